package admission

// Schema names the version of the input that policies receive. A field may be added under the same name;
// a change that would alter what a policy concludes takes a new one.
const Schema = "pipeguard.dev/admission/v1"

// Input is what a policy receives: who asks for what, and each way in which the object reaches a device of the host.
// Every field is always present.
type Input struct {
	// Schema is the constant of the same name.
	Schema string `json:"schema"`
	// Now is the time of the decision, RFC 3339 in UTC. Policies have no clock, so that a decision can be repeated.
	Now string `json:"now"`
	// Operation is CREATE or UPDATE.
	Operation   string `json:"operation"`
	Kind        Kind   `json:"kind"`
	Subresource string `json:"subresource"`
	// Namespace is the request's, whatever the object says; empty for a PersistentVolume.
	Namespace       string            `json:"namespace"`
	Name            string            `json:"name"`
	NamespaceLabels map[string]string `json:"namespaceLabels"`
	// ServiceAccount is the pod's; "default" where it names none, and empty for a PersistentVolume.
	ServiceAccount string `json:"serviceAccount"`
	User           User   `json:"user"`
	// Labels and Annotations are the object's own.
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	// Pod is what is known of the pod beside its containers, or of the pods that will be made of a template.
	Pod        PodMeta     `json:"pod"`
	Containers []Container `json:"containers"`
	// Mounts has one entry for each container, mount and volume of that name whose host path is guarded, is beneath or above one that is, is of equal power, or
	// names a device or a share. Other directories and files of the host are left out.
	Mounts []Mount `json:"mounts"`
	// Unmounted has the declared volumes of that sort that no container mounts.
	Unmounted []Volume `json:"unmounted"`
	// PersistentVolumes has the path of that sort of an object of that kind. Such an object has no namespace, no service
	// account and no containers: the holder of its claim may use it.
	PersistentVolumes []PersistentVolume `json:"persistentVolumes"`
}

// PodMeta is the metadata of a pod or of a template of pods, with what else counts for all of its containers. A PersistentVolume has none: all fields are empty.
type PodMeta struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	// Field is the path of this metadata in the object.
	Field string `json:"field"`
	// HostNetwork is the pod's setting. Every HostProcess container needs it.
	HostNetwork bool `json:"hostNetwork"`
}

// Kind is the kind of the object.
type Kind struct {
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
}

// User is who asks.
type User struct {
	Name   string   `json:"name"`
	Groups []string `json:"groups"`
}

// Types of containers.
const (
	typeContainer = "container"
	typeInit      = "initContainer"
	typeEphemeral = "ephemeralContainer"
)

// Container is one container of the pod, of any of its lists.
type Container struct {
	Name string `json:"name"`
	// Type is container, initContainer or ephemeralContainer.
	Type  string `json:"type"`
	Image string `json:"image"`
	// Privileged is the container's own setting.
	Privileged bool `json:"privileged"`
	// HostProcess is the container's setting or, where it has none, the pod's.
	HostProcess bool `json:"hostProcess"`
	// RunAsUserName is the Windows account of the container's setting or, where it has none, of the pod's; empty where neither has one.
	RunAsUserName string `json:"runAsUserName"`
	// Access is what PipePolicies permit it as a HostProcess container. It has no action: the parameter hostProcess sets the action.
	Access *Access `json:"access"`
	// Field is the path of the container in the object.
	Field string `json:"field"`
}

// Target is what a host path names.
type Target struct {
	// Path is the host path as written.
	Path string `json:"path"`
	// Canonical is the one spelling of what Path, joined with the mount's subPath where that matters, names.
	Canonical string `json:"canonical"`
	Kind      string `json:"kind"`
	// Pipe is the lower-case name of the pipe; empty unless Kind is "pipe".
	Pipe string `json:"pipe"`
	// Guarded is true if the path names a guarded pipe or may lead to one.
	Guarded bool `json:"guarded"`
	// NeverAllowed is true if the path names no single pipe that anyone could be allowed.
	NeverAllowed bool `json:"neverAllowed"`
	// EqualPower says in what way the path gives as much as a guarded pipe: pipe, directory, disk, share, or empty.
	EqualPower string `json:"equalPower"`
	// Place is how the path stands to a guarded host path: path for the path itself, beneath, above (a directory, disk or share that it is in, or may be), or empty.
	Place string `json:"place"`
	// HostPath is the guarded host path, as the parameters have it; empty with the place above where all are.
	HostPath string `json:"hostPath"`
	// Policies are the names of the PipePolicies that govern the pipe, sorted. Those of the parameters begin with "parameters/".
	Policies []string `json:"policies"`

	// Access is what these PipePolicies say of the container that mounts the path; of one with a place or of equal power, what PipePolicies permit of the host.
	Access *Access `json:"access"`

	governing *governing // whose names Policies are; nil in an Input that was not extracted
}

// Mount is one host path that a container gets.
type Mount struct {
	Container     string `json:"container"`
	ContainerType string `json:"containerType"`
	Image         string `json:"image"`
	Privileged    bool   `json:"privileged"`
	HostProcess   bool   `json:"hostProcess"`
	Volume        string `json:"volume"`
	// SubPath is the mount's subPath, or its subPathExpr: as written if it has variables, expanded if it has none.
	SubPath string `json:"subPath"`
	Target
	// Field is the path of the mount in the object, VolumeField that of the volume's host path.
	Field       string `json:"field"`
	VolumeField string `json:"volumeField"`

	runAsUserName string // the container's
}

// Volume is one declared volume that no container mounts.
type Volume struct {
	Volume string `json:"volume"`
	Target
	// Field is the path of the volume's host path in the object.
	Field string `json:"field"`
}

// PersistentVolume is where a PersistentVolume leads on a node.
type PersistentVolume struct {
	// Type is hostPath or local.
	Type string `json:"type"`
	Target
	// Field is the path of the volume's host path in the object.
	Field string `json:"field"`
	// Claim is the claim that the volume is bound to or promised to.
	Claim Claim `json:"claim"`
}

// Claim names a PersistentVolumeClaim. Both names are empty if the volume has none.
type Claim struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}
