package admission

import (
	"github.com/open-policy-agent/opa/v1/ast"
)

// Keys of the input as terms. They are made once: a term is never changed after it was built.
var (
	keySchema          = ast.StringTerm("schema")
	keyNow             = ast.StringTerm("now")
	keyOperation       = ast.StringTerm("operation")
	keyKind            = ast.StringTerm("kind")
	keyGroup           = ast.StringTerm("group")
	keyVersion         = ast.StringTerm("version")
	keySubresource     = ast.StringTerm("subresource")
	keyNamespace       = ast.StringTerm("namespace")
	keyName            = ast.StringTerm("name")
	keyNamespaceLabels = ast.StringTerm("namespaceLabels")
	keyServiceAccount  = ast.StringTerm("serviceAccount")
	keyUser            = ast.StringTerm("user")
	keyGroups          = ast.StringTerm("groups")
	keyLabels          = ast.StringTerm("labels")
	keyAnnotations     = ast.StringTerm("annotations")
	keyContainers      = ast.StringTerm("containers")
	keyMounts          = ast.StringTerm("mounts")
	keyUnmounted       = ast.StringTerm("unmounted")
	keyType            = ast.StringTerm("type")
	keyImage           = ast.StringTerm("image")
	keyPrivileged      = ast.StringTerm("privileged")
	keyHostProcess     = ast.StringTerm("hostProcess")
	keyField           = ast.StringTerm("field")
	keyContainer       = ast.StringTerm("container")
	keyContainerType   = ast.StringTerm("containerType")
	keyVolume          = ast.StringTerm("volume")
	keyPath            = ast.StringTerm("path")
	keySubPath         = ast.StringTerm("subPath")
	keyCanonical       = ast.StringTerm("canonical")
	keyPipe            = ast.StringTerm("pipe")
	keyGuarded         = ast.StringTerm("guarded")
	keyNeverAllowed    = ast.StringTerm("neverAllowed")
	keyVolumeField     = ast.StringTerm("volumeField")
	keyObject          = ast.StringTerm("object")
	keyPod             = ast.StringTerm("pod")
	keyEqualPower      = ast.StringTerm("equalPower")
	keyPolicies        = ast.StringTerm("policies")
	keyPersistent      = ast.StringTerm("persistentVolumes")
	keyClaim           = ast.StringTerm("claim")
	keyAccess          = ast.StringTerm("access")
	keyRunAsUserName   = ast.StringTerm("runAsUserName")
	keyHostNetwork     = ast.StringTerm("hostNetwork")
	keyPlace           = ast.StringTerm("place")
	keyHostPath        = ast.StringTerm("hostPath")

	valueSchema = ast.StringTerm(Schema)
	valueTrue   = ast.BooleanTerm(true)
	valueFalse  = ast.BooleanTerm(false)

	valueEmpty     = ast.StringTerm("")
	valuePipe      = ast.StringTerm("pipe")
	valueContainer = ast.StringTerm(typeContainer)
)

type item = [2]*ast.Term

// value builds the input as OPA wants it. Going through JSON instead gives the same value at many times the cost.
// object, the whole object as the API server sent it, is left out if nil.
func (in *Input) value(object ast.Value) ast.Value {
	labels, annotations := texts(in.Labels), texts(in.Annotations)
	items := make([]item, 0, 18)
	items = append(items,
		item{keySchema, valueSchema},
		item{keyNow, text(in.Now)},
		item{keyOperation, text(in.Operation)},
		item{keyKind, ast.ObjectTerm(
			item{keyGroup, text(in.Kind.Group)},
			item{keyVersion, text(in.Kind.Version)},
			item{keyKind, text(in.Kind.Kind)},
		)},
		item{keySubresource, text(in.Subresource)},
		item{keyNamespace, text(in.Namespace)},
		item{keyName, text(in.Name)},
		item{keyNamespaceLabels, texts(in.NamespaceLabels)},
		item{keyServiceAccount, text(in.ServiceAccount)},
		item{keyUser, ast.ObjectTerm(item{keyName, text(in.User.Name)}, item{keyGroups, list(in.User.Groups, text)})},
		item{keyLabels, labels},
		item{keyAnnotations, annotations},
		item{keyPod, in.podTerm(labels, annotations)},
		item{keyContainers, list(in.Containers, Container.term)},
		item{keyMounts, in.mounts()},
		item{keyUnmounted, list(in.Unmounted, Volume.term)},
		item{keyPersistent, list(in.PersistentVolumes, PersistentVolume.term)},
	)
	if object != nil {
		items = append(items, item{keyObject, ast.NewTerm(object)})
	}
	return ast.NewObject(items...)
}

func (c Container) term() *ast.Term {
	return ast.ObjectTerm(
		item{keyName, text(c.Name)},
		item{keyType, text(c.Type)},
		item{keyImage, text(c.Image)},
		item{keyPrivileged, boolean(c.Privileged)},
		item{keyHostProcess, boolean(c.HostProcess)},
		item{keyRunAsUserName, text(c.RunAsUserName)},
		item{keyAccess, c.Access.value()},
		item{keyField, text(c.Field)},
	)
}

// mounts are many of few containers, so those of one container share the terms that name it.
func (in *Input) mounts() *ast.Term {
	terms := make([]*ast.Term, len(in.Mounts))
	var name, image *ast.Term
	for i := range in.Mounts {
		m := &in.Mounts[i]
		if i == 0 || m.Container != in.Mounts[i-1].Container {
			name = text(m.Container)
		}
		if i == 0 || m.Image != in.Mounts[i-1].Image {
			image = text(m.Image)
		}
		terms[i] = m.term(name, image)
	}
	return ast.NewTerm(ast.NewArray(terms...))
}

func (m *Mount) term(name, image *ast.Term) *ast.Term {
	return m.termWith(
		item{keyContainer, name},
		item{keyContainerType, text(m.ContainerType)},
		item{keyImage, image},
		item{keyPrivileged, boolean(m.Privileged)},
		item{keyHostProcess, boolean(m.HostProcess)},
		item{keyVolume, text(m.Volume)},
		item{keySubPath, text(m.SubPath)},
		item{keyField, text(m.Field)},
		item{keyVolumeField, text(m.VolumeField)},
	)
}

func (v Volume) term() *ast.Term {
	return v.termWith(item{keyVolume, text(v.Volume)}, item{keyField, text(v.Field)})
}

func (v PersistentVolume) term() *ast.Term {
	return v.termWith(
		item{keyType, text(v.Type)},
		item{keyField, text(v.Field)},
		item{keyClaim, ast.ObjectTerm(item{keyNamespace, text(v.Claim.Namespace)}, item{keyName, text(v.Claim.Name)})},
	)
}

// termWith is the term of what the path belongs to.
func (t *Target) termWith(more ...item) *ast.Term {
	path, canonical := t.pathTerms()
	return ast.ObjectTerm(append(more,
		item{keyPath, path},
		item{keyCanonical, canonical},
		item{keyKind, text(t.Kind)},
		item{keyPipe, text(t.Pipe)},
		item{keyGuarded, boolean(t.Guarded)},
		item{keyNeverAllowed, boolean(t.NeverAllowed)},
		item{keyEqualPower, text(t.EqualPower)},
		item{keyPlace, text(t.Place)},
		item{keyHostPath, text(t.HostPath)},
		item{keyPolicies, t.policies()},
		item{keyAccess, t.Access.value()},
	)...)
}

// pathTerms are one where a path is written in its canonical form, as most are.
func (t *Target) pathTerms() (path, canonical *ast.Term) {
	path = text(t.Path)
	if t.Canonical == t.Path {
		return path, path
	}
	return path, text(t.Canonical)
}

func (t *Target) policies() *ast.Term {
	if t.governing == nil {
		return list(t.Policies, text)
	}
	return t.governing.term
}

func (a *Access) value() *ast.Term {
	if a == nil {
		return ast.NullTerm()
	}
	return a.term
}

// podTerm takes the terms of the object's own labels and annotations: those of a Pod are the same.
func (in *Input) podTerm(labels, annotations *ast.Term) *ast.Term {
	if in.Pod.Field != "metadata" {
		labels, annotations = texts(in.Pod.Labels), texts(in.Pod.Annotations)
	}
	return ast.ObjectTerm(item{keyLabels, labels}, item{keyAnnotations, annotations}, item{keyField, text(in.Pod.Field)}, item{keyHostNetwork, boolean(in.Pod.HostNetwork)})
}

// text makes a term, or takes one of those that almost every input has.
func text(s string) *ast.Term {
	switch s {
	case "":
		return valueEmpty
	case "pipe":
		return valuePipe
	case typeContainer:
		return valueContainer
	}
	return ast.StringTerm(s)
}

func boolean(b bool) *ast.Term {
	if b {
		return valueTrue
	}
	return valueFalse
}

func texts(m map[string]string) *ast.Term {
	items := make([]item, 0, len(m))
	for k, v := range m {
		items = append(items, item{text(k), text(v)})
	}
	return ast.ObjectTerm(items...)
}

func list[T any](entries []T, term func(T) *ast.Term) *ast.Term {
	terms := make([]*ast.Term, len(entries))
	for i, e := range entries {
		terms[i] = term(e)
	}
	return ast.NewTerm(ast.NewArray(terms...))
}
