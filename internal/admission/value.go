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

	valueSchema = ast.StringTerm(Schema)
	valueTrue   = ast.BooleanTerm(true)
	valueFalse  = ast.BooleanTerm(false)
)

type item = [2]*ast.Term

// value builds the input as OPA wants it. Going through JSON instead gives the same value at many times the cost.
// object, the whole object as the API server sent it, is left out if nil.
func (in *Input) value(object ast.Value) ast.Value {
	items := make([]item, 0, 17)
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
		item{keyLabels, texts(in.Labels)},
		item{keyAnnotations, texts(in.Annotations)},
		item{keyContainers, list(in.Containers, Container.term)},
		item{keyMounts, list(in.Mounts, Mount.term)},
		item{keyUnmounted, list(in.Unmounted, Volume.term)},
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
		item{keyField, text(c.Field)},
	)
}

func (m Mount) term() *ast.Term {
	return ast.ObjectTerm(
		item{keyContainer, text(m.Container)},
		item{keyContainerType, text(m.ContainerType)},
		item{keyImage, text(m.Image)},
		item{keyPrivileged, boolean(m.Privileged)},
		item{keyHostProcess, boolean(m.HostProcess)},
		item{keyVolume, text(m.Volume)},
		item{keySubPath, text(m.SubPath)},
		item{keyPath, text(m.Path)},
		item{keyCanonical, text(m.Canonical)},
		item{keyKind, text(m.Kind)},
		item{keyPipe, text(m.Pipe)},
		item{keyGuarded, boolean(m.Guarded)},
		item{keyNeverAllowed, boolean(m.NeverAllowed)},
		item{keyField, text(m.Field)},
		item{keyVolumeField, text(m.VolumeField)},
	)
}

func (v Volume) term() *ast.Term {
	return ast.ObjectTerm(
		item{keyVolume, text(v.Volume)},
		item{keyPath, text(v.Path)},
		item{keyCanonical, text(v.Canonical)},
		item{keyKind, text(v.Kind)},
		item{keyPipe, text(v.Pipe)},
		item{keyGuarded, boolean(v.Guarded)},
		item{keyNeverAllowed, boolean(v.NeverAllowed)},
		item{keyField, text(v.Field)},
	)
}

func text(s string) *ast.Term { return ast.StringTerm(s) }

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
