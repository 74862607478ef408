package proxy

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/pipeguard/pipeguard/internal/proxy/acl"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/internal/proxy/peer"
)

// asCaller puts an identity into the words of the access list.
func asCaller(i peer.Identity) acl.Caller {
	c := acl.Caller{Assurance: string(i.Assurance), User: i.User.SID, Exe: i.Process.Exe, Doubt: i.Doubt != ""}
	if p := i.Pod; p != nil {
		c.Namespace, c.Pod, c.ServiceAccount = p.Namespace, p.Name, p.ServiceAccount
	}
	if k := i.Container; k != nil {
		c.Container, c.Image, c.HostProcess = k.Name, k.Image, k.HostProcess
	}
	return c
}

// asPrincipal is the party that limits are counted for: the container of a pod if it is proven, else account and program.
func asPrincipal(i peer.Identity) acl.Principal {
	if i.Pod != nil && i.Container != nil {
		return acl.Principal{PodUID: i.Pod.UID, Container: i.Container.ID, Namespace: i.Pod.Namespace}
	}
	return acl.Principal{User: i.User.SID, Exe: programKey(i.Process.Exe)}
}

// programKey stands for the path of a program in one case. It is kept for each caller, so a long one ends in its hash.
func programKey(exe string) string {
	exe = strings.ToLower(exe)
	if len(exe) <= maxTargetText {
		return exe
	}
	hash := sha256.Sum256([]byte(exe))
	return shorter(exe) + hex.EncodeToString(hash[:])
}

// couldBe puts an identity into the words of the access list as far as it goes before a call: a caller in a pod could still send a token
// that is the pod's, where the pipe looks at tokens. What a call may do is asked of the token that it has.
func (p *pipe) couldBe(who peer.Identity) acl.Caller {
	c := asCaller(who)
	c.Token = who.Pod != nil && p.looksAtTokens()
	return c
}

// isStranger says that neither the access list nor the cluster's roles could allow the caller any call on this pipe. All calls
// of strangers are denied, so strangers share one small part of what a pipe holds, and callers that could be allowed have the rest.
func (p *pipe) isStranger(rules *Rules, who peer.Identity) bool {
	if rules.List.Admits(p.gv.Group, p.gv.Version, p.couldBe(who)) {
		return false
	}
	return p.roles == nil || !rules.HasRoles || who.Pod == nil
}

// inWords names a caller for an administrator: the service account of a pod, else the account and the program of a process.
func inWords(i peer.Identity) string {
	switch {
	case i.Pod != nil && i.Pod.ServiceAccount != "":
		return i.Pod.Namespace + "/" + i.Pod.ServiceAccount
	case i.Pod != nil:
		return i.Pod.Namespace + "/" + i.Pod.Name
	}
	return strings.TrimSpace(i.User.SID + " " + shorter(i.Process.Exe))
}

// named are the values of one kind, such as "path", that a call names.
func named(targets []apiserver.Target, kind string) []string {
	var values []string
	for _, t := range targets {
		if t.Kind == kind {
			values = append(values, t.Value)
		}
	}
	return values
}
