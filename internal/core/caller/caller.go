// Package caller describes a caller: what a node has proven about a process, or what a pod declares about one of its containers. An empty field is unknown.
package caller

import "time"

// Caller is who calls. Callers are equal if all that is known of them is.
type Caller struct {
	Assurance Assurance
	Process   Process
	User      User
	// Pod and Container are those that the process is in, with AssurancePod or AssuranceDeclared. A HostProcess container that runs as SYSTEM can leave its job,
	// and then is no container any more.
	Pod       Pod
	Container Container
	// Token says that a token was verified, and is that of the pod.
	Token bool
	// IsHost says that the runtime was asked after the process had connected, and that none of its containers holds it.
	IsHost bool
	// Doubt is, for people, what could not be found out: whether there is a container, or the pod's service account. No more than a process, such a caller may be
	// in a container: rules cover it as ever, and none names it.
	Doubt string
}

// Process is the program at the other end of a pipe.
type Process struct {
	PID   uint32
	Start time.Time // creation time as the kernel reports it, zero if not known
	Exe   string    // full path of the image, in the host's own spelling
}

// User is the account that a process runs as.
type User struct {
	// SID is a Windows security identifier (S-1-5-18) or, elsewhere, "uid:" and a decimal user id.
	SID string
	// Name is the account's name for people to read; it may be empty and decides nothing.
	Name string
}

// Pod is what a container belongs to.
type Pod struct {
	Namespace, Name, UID string
	// ServiceAccount is its name without the namespace.
	ServiceAccount string
}

// Container is one of a pod.
type Container struct {
	// ID is 64 random hexadecimal digits from the container runtime, never used twice.
	ID string
	// Name is the container's in its pod.
	Name string
	// Image is the reference in the pod's specification, as the kubelet passed it on.
	Image string
	// HostProcess is a container whose processes are the host's own, in a job (Windows alone).
	HostProcess bool
	// RunAsUserName is the Windows account that a pod declares for it. On a node, User is what is known instead.
	RunAsUserName string
}

// Declared is a container of a pod by the pod's own words.
func Declared(p Pod, c Container) Caller {
	return Caller{Assurance: AssuranceDeclared, Pod: p, Container: c}
}

// HasPod says whether anything is known of a pod or a container.
func (c Caller) HasPod() bool { return c.Pod != Pod{} || c.Container != Container{} }
