package requestpolicy

import (
	"strconv"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/pipeguard/pipeguard/internal/core/caller"
)

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

func (b *builder) peer(p *caller.Caller) *ast.Term {
	pod, container := null, null
	if p.Pod != (caller.Pod{}) {
		pod = ast.ObjectTerm(
			item{keyNamespace, b.text("peer.pod.namespace", p.Pod.Namespace)},
			item{keyName, b.text("peer.pod.name", p.Pod.Name)},
			item{keyUID, b.text("peer.pod.uid", p.Pod.UID)},
			item{keyServiceAccount, b.text("peer.pod.serviceAccount", p.Pod.ServiceAccount)},
		)
	}
	if p.Container != (caller.Container{}) {
		container = ast.ObjectTerm(
			item{keyID, b.text("peer.container.id", p.Container.ID)},
			item{keyName, b.text("peer.container.name", p.Container.Name)},
			item{keyImage, b.text("peer.container.image", p.Container.Image)},
			item{keyHostProcess, ast.InternedTerm(p.Container.HostProcess)},
		)
	}
	return ast.ObjectTerm(
		item{keyAssurance, b.text("peer.assurance", string(p.Assurance))},
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
