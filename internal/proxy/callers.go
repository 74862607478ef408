package proxy

import (
	"strings"

	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
)

// couldBe is the caller as far as it is known before a call: one in a pod could still send a token
// that is the pod's, where the pipe looks at tokens. What a call may do is asked of the token that it has.
func (p *pipe) couldBe(who caller.Caller) caller.Caller {
	who.Token = who.HasPod() && p.looksAtTokens()
	return who
}

// isStranger says that neither the access list nor the cluster's roles could allow the caller any call on this pipe. All calls
// of strangers are denied, so strangers share one small part of what a pipe holds, and callers that could be allowed have the rest.
func (p *pipe) isStranger(rules *Rules, who caller.Caller) bool {
	if rules.List.Admits(p.gv.Group, p.gv.Version, p.couldBe(who)) {
		return false
	}
	return p.roles == nil || !rules.HasRoles || !who.HasPod()
}

// inWords names a caller for an administrator: the service account of a pod, else the account and the program of a process.
func inWords(i caller.Caller) string {
	switch {
	case i.Pod.ServiceAccount != "":
		return i.Pod.Namespace + "/" + i.Pod.ServiceAccount
	case i.HasPod():
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
