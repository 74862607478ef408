package admission

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pipeguard/pipeguard/internal/admission/jsonscan"
)

// judgedKind is a kind that is judged, and where in its objects the part is that gives access to a node.
type judgedKind struct {
	metav1.GroupVersionKind
	resource string
	// isCluster is true for a kind without namespaces.
	isCluster bool
	// path leads to the pod spec. What holds the pod spec is the pod, or the template of pods: the object itself, if path
	// has one key. For a kind that holds no pods it leads to what leaf reads.
	path []string
	leaf func(r *jsonscan.Reader, obj *object)
}

// judgedKinds has a row for each kind that is judged. A kind that is not here is refused: its risks are not known.
var judgedKinds = []judgedKind{
	podHolder("", "Pod", "pods", "spec"),
	podHolder("", "PodTemplate", "podtemplates", "template", "spec"),
	podHolder("", "ReplicationController", "replicationcontrollers", "spec", "template", "spec"),
	podHolder("apps", "Deployment", "deployments", "spec", "template", "spec"),
	podHolder("apps", "DaemonSet", "daemonsets", "spec", "template", "spec"),
	podHolder("apps", "StatefulSet", "statefulsets", "spec", "template", "spec"),
	podHolder("apps", "ReplicaSet", "replicasets", "spec", "template", "spec"),
	podHolder("batch", "Job", "jobs", "spec", "template", "spec"),
	podHolder("batch", "CronJob", "cronjobs", "spec", "jobTemplate", "spec", "template", "spec"),
	{
		GroupVersionKind: metav1.GroupVersionKind{Version: "v1", Kind: "PersistentVolume"}, resource: "persistentvolumes",
		isCluster: true, path: []string{"spec"}, leaf: readPersistentVolume,
	},
}

func podHolder(group, kind, resource string, path ...string) judgedKind {
	return judgedKind{
		GroupVersionKind: metav1.GroupVersionKind{Group: group, Version: "v1", Kind: kind},
		resource:         resource, path: path,
		leaf: func(r *jsonscan.Reader, obj *object) { obj.pod = readPodSpec(r) },
	}
}

// Kinds are the kinds that are judged.
func Kinds() []metav1.GroupVersionKind {
	out := make([]metav1.GroupVersionKind, len(judgedKinds))
	for i, k := range judgedKinds {
		out[i] = k.GroupVersionKind
	}
	return out
}

// Resources are the same kinds, as the API server serves them.
func Resources() []metav1.APIResource {
	out := make([]metav1.APIResource, len(judgedKinds))
	for i, k := range judgedKinds {
		out[i] = metav1.APIResource{Group: k.Group, Version: k.Version, Kind: k.Kind, Name: k.resource, Namespaced: !k.isCluster}
	}
	return out
}

// Entries are the resources that are judged, by the entry of the webhook configuration that asks about them: kinds that keep
// their pods in the same place share one, as its conditions are about that place.
func Entries() map[string][]metav1.APIResource {
	out := map[string][]metav1.APIResource{}
	for i, r := range Resources() {
		entry := judgedKinds[i].entry()
		out[entry] = append(out[entry], r)
		if r.Kind == "Pod" { // the other subresources change nothing that is judged
			r.Name += "/ephemeralcontainers"
			out[entry] = append(out[entry], r)
		}
	}
	return out
}

// entry is the name of the entry that asks about the kind.
func (k *judgedKind) entry() string {
	if slices.Equal(k.path, []string{"spec", "template", "spec"}) {
		return "workloads"
	}
	return k.resource
}

func judgedKindOf(kind metav1.GroupVersionKind) (*judgedKind, bool) {
	for i := range judgedKinds {
		if judgedKinds[i].GroupVersionKind == kind {
			return &judgedKinds[i], true
		}
	}
	return nil, false
}

// holdsPods is false for a kind that reaches a node without a pod of its own.
func (k *judgedKind) holdsPods() bool { return !k.isCluster }

// isTemplate is true for a kind whose pods others make.
func (k *judgedKind) isTemplate() bool { return k.holdsPods() && len(k.path) > 1 }

// podField is the path of the pod spec in the object.
func (k *judgedKind) podField() string { return strings.Join(k.path, ".") }

// podMetadataField is the path of the metadata of the pod, or of the template; empty if there is none.
func (k *judgedKind) podMetadataField() string {
	if !k.holdsPods() {
		return ""
	}
	return strings.Join(append(slices.Clone(k.path[:len(k.path)-1]), "metadata"), ".")
}

// read takes an object of this kind from r.
func (k *judgedKind) read(r *jsonscan.Reader) object {
	obj := object{rules: k}
	r.Members(
		jsonscan.Text("apiVersion", &obj.apiVersion),
		jsonscan.Text("kind", &obj.kind),
		jsonscan.Value("metadata", func() { obj.meta = readMetadata(r) }),
		jsonscan.Value(k.path[0], func() { k.descend(r, &obj, 1) }),
	)
	if k.holdsPods() && obj.pod.serviceAccount == "" { // an object without spec or template
		obj.pod.serviceAccount = "default"
	}
	if obj.pod.placement.isLinux() {
		obj.leaveOutWindows()
	}
	return obj
}

// descend follows the rest of the path, and takes the metadata beside its end.
func (k *judgedKind) descend(r *jsonscan.Reader, obj *object, depth int) {
	if depth == len(k.path) {
		k.leaf(r, obj)
		return
	}
	members := []jsonscan.Member{jsonscan.Value(k.path[depth], func() { k.descend(r, obj, depth+1) })}
	if depth == len(k.path)-1 {
		members = append(members, jsonscan.Value("metadata", func() { obj.template = readMetadata(r) }))
	}
	r.Members(members...)
}

// readObject reads raw as an object of the kind that the API server announced. An object of another kind is an error, and so is one that
// takes more than the allowance.
func readObject(raw []byte, kind metav1.GroupVersionKind, a *jsonscan.Allowance) (object, error) {
	k, ok := judgedKindOf(kind)
	if !ok {
		return object{}, fmt.Errorf("objects of kind %s are not judged here", quote(kindName(kind), maxName))
	}
	r := jsonscan.NewReader(raw).Within(a)
	if r.Null() {
		return object{}, fmt.Errorf("the object is null")
	}
	obj := k.read(r)
	r.End()
	if err := r.Err(); err != nil {
		return object{}, fmt.Errorf("read the object: %w", err)
	}
	if err := sameKind(obj.apiVersion, obj.kind, kind); err != nil {
		return object{}, err
	}
	return obj, nil
}

// sameKind compares an object's own apiVersion and kind with the kind of the request.
func sameKind(apiVersion, kind string, want metav1.GroupVersionKind) error {
	if apiVersion != apiVersionOf(want) || kind != want.Kind {
		return fmt.Errorf("the request is about %s, its object is %s",
			quote(kindName(want), maxName), quote(apiVersion+" "+kind, maxName))
	}
	return nil
}

func kindName(k metav1.GroupVersionKind) string { return apiVersionOf(k) + " " + k.Kind }

// apiVersionOf is the group and version of a kind as an object has them.
func apiVersionOf(k metav1.GroupVersionKind) string {
	return schema.GroupVersionKind(k).GroupVersion().String()
}
