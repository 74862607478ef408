package request

import (
	"strconv"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Peer is the caller as far as it was proven. What is not known is empty or nil.
type Peer struct {
	Assurance string // none, sid, process or pod
	Process   Process
	User      User
	Pod       *Pod
	Container *Container
	Token     bool // it sent a token, which was verified and belongs to the pod
}

// Process is the caller's process.
type Process struct {
	PID   uint32
	Start time.Time // zero if not known
	Exe   string    // its program as the kernel names it
}

// User is the account of a process.
type User struct{ SID, Name string }

// Pod is the pod of a container that was proven.
type Pod struct{ Namespace, Name, UID, ServiceAccount string }

// Container is the container that the kernel says the process is in.
type Container struct {
	ID, Name, Image string
	HostProcess     bool
}

// Keys of the input as terms. They are made once: a term is never changed after it was built.
var (
	keyPeer           = ast.StringTerm("peer")
	keyNamed          = ast.StringTerm("named")
	keyPipe           = ast.StringTerm("pipe")
	keyGroup          = ast.StringTerm("group")
	keyVersion        = ast.StringTerm("version")
	keyMethod         = ast.StringTerm("method")
	keyOperation      = ast.StringTerm("operation")
	keyRequest        = ast.StringTerm("request")
	keyNode           = ast.StringTerm("node")
	keyNow            = ast.StringTerm("now")
	keyAssurance      = ast.StringTerm("assurance")
	keyProcess        = ast.StringTerm("process")
	keyPID            = ast.StringTerm("pid")
	keyStart          = ast.StringTerm("start")
	keyExe            = ast.StringTerm("exe")
	keyUser           = ast.StringTerm("user")
	keySID            = ast.StringTerm("sid")
	keyName           = ast.StringTerm("name")
	keyPod            = ast.StringTerm("pod")
	keyNamespace      = ast.StringTerm("namespace")
	keyUID            = ast.StringTerm("uid")
	keyServiceAccount = ast.StringTerm("serviceAccount")
	keyContainer      = ast.StringTerm("container")
	keyID             = ast.StringTerm("id")
	keyImage          = ast.StringTerm("image")
	keyHostProcess    = ast.StringTerm("hostProcess")
	keyToken          = ast.StringTerm("token")

	null = ast.NullTerm()
)

type item = [2]*ast.Term

func (b *builder) peer(p *Peer) *ast.Term {
	pod, container := null, null
	if p.Pod != nil {
		pod = ast.ObjectTerm(
			item{keyNamespace, b.text("peer.pod.namespace", p.Pod.Namespace)},
			item{keyName, b.text("peer.pod.name", p.Pod.Name)},
			item{keyUID, b.text("peer.pod.uid", p.Pod.UID)},
			item{keyServiceAccount, b.text("peer.pod.serviceAccount", p.Pod.ServiceAccount)},
		)
	}
	if p.Container != nil {
		container = ast.ObjectTerm(
			item{keyID, b.text("peer.container.id", p.Container.ID)},
			item{keyName, b.text("peer.container.name", p.Container.Name)},
			item{keyImage, b.text("peer.container.image", p.Container.Image)},
			item{keyHostProcess, ast.InternedTerm(p.Container.HostProcess)},
		)
	}
	return ast.ObjectTerm(
		item{keyAssurance, b.text("peer.assurance", p.Assurance)},
		item{keyProcess, ast.ObjectTerm(
			item{keyPID, number(strconv.FormatUint(uint64(p.Process.PID), 10))},
			item{keyStart, b.text("peer.process.start", when(p.Process.Start))},
			item{keyExe, b.text("peer.process.exe", p.Process.Exe)},
		)},
		item{keyUser, ast.ObjectTerm(
			item{keySID, b.text("peer.user.sid", p.User.SID)},
			item{keyName, b.text("peer.user.name", p.User.Name)},
		)},
		item{keyPod, pod},
		item{keyContainer, container},
		item{keyToken, ast.InternedTerm(p.Token)},
	)
}

// when writes a time so that texts compare as times do: in UTC, to the second. The zero time is empty.
func when(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05Z")
}
