package token

import (
	"context"
	"crypto/sha256"
	"time"
)

// The words of the cluster's RBAC for what this proxy guards. There is no such resource to get or list; roles may name it.
const (
	accessGroup    = "pipeguard.dev"
	accessResource = "pipes"
	// VerbConnect allows every method of a pipe. Every other verb is a method's name, spelled as the API spells it.
	VerbConnect = "connect"
)

const (
	accessReviewPath = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
	accessReviewKind = "SubjectAccessReview"
	accessReviewAPI  = "authorization.k8s.io/v1"
)

// accessReview is authorization.k8s.io/v1 SubjectAccessReview, as far as it is used.
type accessReview = review[accessSpec, accessStatus]

type accessSpec struct {
	User               string              `json:"user"`
	Groups             []string            `json:"groups"`
	Extra              map[string][]string `json:"extra,omitempty"`
	ResourceAttributes attributes          `json:"resourceAttributes"`
}

type accessStatus struct {
	Allowed bool `json:"allowed"`
	Denied  bool `json:"denied"`
}

type attributes struct {
	Group    string `json:"group"`
	Resource string `json:"resource"`
	Name     string `json:"name"`
	Verb     string `json:"verb"`
}

// Access is what the cluster's RBAC said about a call.
type Access struct {
	// Verb is the one that allowed it: VerbConnect or the method.
	Verb string
	// Cached, Stale and Checked are as in Result.
	Cached, Stale bool
	Checked       time.Time
}

// Resolved returns the identity of a caller whose pod and service account are known without a token, so that Authorize can be
// asked about callers that send none. It is the zero value, which Authorize refuses, if any of them is not known.
func (v *Verifier) Resolved(caller Facts) Identity {
	p := caller.Pod
	if p.UID == "" || p.Namespace == "" || p.Name == "" || p.ServiceAccount == "" {
		return Identity{}
	}
	return Identity{
		Namespace: p.Namespace, ServiceAccount: p.ServiceAccount, PodName: p.Name, PodUID: p.UID,
		Node: v.config.Node, Expires: v.now().Add(v.config.MaxLifetime), // the process ends it, see Facts.Alive
	}
}

// Authorize asks whether the cluster's RBAC lets a service account use a method of a pipe, named as in disk-v1. The identity
// must be one that Check or Resolved returned for the same caller. An error is a *Refusal, and means no.
func (v *Verifier) Authorize(ctx context.Context, id Identity, pipe, method string, caller Facts) (Access, error) {
	var last *Refusal
	switch {
	case v.api == nil:
		last = refuse(Unconfigured, "this proxy knows no API server to ask about access")
	case !isName(id.Namespace, maxName) || !isName(id.ServiceAccount, maxName) || !isName(id.PodUID, maxUID) || caller.Process.PID == 0:
		last = refuse(Unbound, "there is no service account to ask about")
	case !v.now().Before(id.Expires.Add(v.config.Leeway)):
		last = refuse(WrongTime, "it has expired since it was checked")
	case pipe == "" || method == "" || len(pipe) > maxName || len(method) > maxName:
		last = refuse(Forbidden, "no RBAC rule can name this pipe or method")
	}
	if last == nil {
		last = id.binds(caller)
	}
	if last != nil {
		v.metrics.authorized(pipe, last, false)
		return Access{}, last
	}
	verbs := [2]string{VerbConnect, method}
	if v.access.remembers(v.accessQuestion(id, pipe, method, caller).key) {
		verbs = [2]string{method, VerbConnect} // it was what allowed, and may have to stand in
	}
	for _, verb := range verbs {
		f, refusal := v.access.find(ctx, v.accessQuestion(id, pipe, verb, caller))
		if refusal == nil {
			v.metrics.authorized(pipe, nil, f.stale)
			return Access{Verb: verb, Cached: f.cached, Stale: f.stale, Checked: f.checked}, nil
		}
		last = refusal
		if refusal.Reason != Forbidden {
			break // the next question would fare no better, and take as long
		}
	}
	v.metrics.authorized(pipe, last, false)
	return Access{}, last
}

func (v *Verifier) accessQuestion(id Identity, pipe, verb string, caller Facts) question[struct{}] {
	return question[struct{}]{
		key: key{
			token: sha256.Sum256([]byte(id.Username() + "\x00" + id.PodName + "\x00" + id.PodUID + "\x00" + id.Node)),
			facts: caller.key(), subject: pipe + "\x00" + verb,
		},
		asker: caller.asker(), expires: id.Expires, alive: caller.Alive,
		ask: func(ctx context.Context) (struct{}, *Refusal) {
			began := time.Now()
			r := v.api.mayUse(ctx, id, pipe, verb)
			v.metrics.asked(accessReviewKind, r, time.Since(began))
			return struct{}{}, r
		},
	}
}

// mayUse asks the API server.
func (c *client) mayUse(ctx context.Context, id Identity, pipe, verb string) *Refusal {
	status, refusal := ask(ctx, c, accessReviewPath, accessReview{APIVersion: accessReviewAPI, Kind: accessReviewKind, Spec: accessSpec{
		User:   id.Username(),
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + id.Namespace, "system:authenticated"},
		Extra:  map[string][]string{extraPodName: {id.PodName}, extraPodUID: {id.PodUID}, extraNode: {id.Node}},
		ResourceAttributes: attributes{
			Group: accessGroup, Resource: accessResource, Name: pipe, Verb: verb,
		},
	}})
	if refusal == nil && (!status.Allowed || status.Denied) {
		return refuse(Forbidden, "%s may not %s %s/%s named %q: no role of the cluster allows it", id.Username(), verb, accessResource, accessGroup, pipe)
	}
	return refusal
}
