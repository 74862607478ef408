package token

import (
	"time"

	"github.com/go-jose/go-jose/v4/jwt"
)

// claims are those of a token that the API server makes for a pod, as in
// https://kubernetes.io/docs/reference/access-authn-authz/service-accounts-admin/#verifying-and-inspecting-private-claims
type claims struct {
	Issuer     string       `json:"iss"`
	Subject    string       `json:"sub"`
	Audience   jwt.Audience `json:"aud"` // one name or several
	Expires    int64        `json:"exp"` // seconds of Unix time, as the next two; a fraction is an error
	NotBefore  int64        `json:"nbf"`
	IssuedAt   int64        `json:"iat"`
	ID         string       `json:"jti"`
	Kubernetes kubernetes   `json:"kubernetes.io"`
}

type kubernetes struct {
	Namespace      string `json:"namespace"`
	ServiceAccount object `json:"serviceaccount"`
	Pod            object `json:"pod"`
	Node           object `json:"node"`
}

type object struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
}

const (
	maxName = 253 // of every object of Kubernetes, in bytes
	maxUID  = 128 // those of the API server are 36 long
	maxUnix = 1 << 40
)

// complete refuses claims that lack what ties a token to a pod: a token of the old kind, from a Secret, ends only with it,
// and one without a pod may be used by any process that has it.
func (c *claims) complete() *Refusal {
	k := c.Kubernetes
	for _, field := range []struct{ name, value string }{
		{"iss", c.Issuer}, {"sub", c.Subject},
		{"kubernetes.io.namespace", k.Namespace}, {"kubernetes.io.serviceaccount.name", k.ServiceAccount.Name},
		{"kubernetes.io.pod.name", k.Pod.Name}, {"kubernetes.io.pod.uid", k.Pod.UID}, {"kubernetes.io.node.name", k.Node.Name},
	} {
		if field.value == "" {
			return refuse(Malformed, "it lacks %s: mount a projected token", field.name)
		}
	}
	for _, name := range []string{k.Namespace, k.ServiceAccount.Name, k.Pod.Name, k.Node.Name} {
		if !isName(name, maxName) {
			return refuse(Malformed, "a name in it cannot be one")
		}
	}
	for _, at := range []int64{c.Expires, c.NotBefore, c.IssuedAt} {
		if at <= 0 || at > maxUnix {
			return refuse(Malformed, "it does not say when it was made, from when and until when it holds")
		}
	}
	switch {
	case !isName(k.Pod.UID, maxUID) || len(c.ID) > maxUID:
		return refuse(Malformed, "an identifier in it cannot be one")
	case c.Subject != c.identity().Username():
		return refuse(Malformed, "its subject is not the service account that it names")
	case len(c.Audience) == 0:
		return refuse(Malformed, "it names no audience")
	}
	return nil
}

// isName lets through what names and identifiers of Kubernetes are made of, so that they can stand in messages and keys.
func isName(s string, limit int) bool {
	for i := range len(s) {
		c := s[i]
		if c != '-' && c != '.' && c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return s != "" && len(s) <= limit
}

func (c *claims) identity() Identity {
	k := c.Kubernetes
	return Identity{
		Namespace: k.Namespace, ServiceAccount: k.ServiceAccount.Name, PodName: k.Pod.Name, PodUID: k.Pod.UID,
		Node: k.Node.Name, Expires: time.Unix(c.Expires, 0),
	}
}

// id is the token's name in the API server's audit log.
func (c *claims) id() string {
	if !isName(c.ID, maxUID) {
		return ""
	}
	return "JTI=" + c.ID
}

// rules are what claims must say.
type rules struct {
	issuer      string // empty: any, since the API server is asked
	audience    string
	node        string
	leeway      time.Duration // between this clock and the issuer's
	maxLifetime time.Duration
}

// check compares what a token says of itself with what it must say here.
func (r rules) check(c *claims, now time.Time) *Refusal {
	made, from, until := time.Unix(c.IssuedAt, 0), time.Unix(c.NotBefore, 0), time.Unix(c.Expires, 0)
	switch {
	case r.issuer != "" && c.Issuer != r.issuer:
		return refuse(WrongIssuer, "another issuer than this cluster's made it")
	case !c.Audience.Contains(r.audience):
		return refuse(WrongTarget, "it is not made for the audience %q", r.audience)
	case !now.Before(until.Add(r.leeway)):
		return refuse(WrongTime, "it expired %s ago: read the file again for each call", now.Sub(until).Truncate(time.Second))
	case now.Add(r.leeway).Before(from) || now.Add(r.leeway).Before(made):
		return refuse(WrongTime, "it is not valid yet: the clocks differ")
	case until.Sub(from) > r.maxLifetime || until.Sub(made) > r.maxLifetime:
		return refuse(WrongTime, "it is valid for longer than %s", r.maxLifetime)
	case c.Kubernetes.Node.Name != r.node:
		return refuse(WrongNode, "it was made for a pod of node %q, and this is %q", c.Kubernetes.Node.Name, r.node)
	}
	return nil
}

// binds compares what a token says with what is known of the caller that sent it. The pod's uid must be known.
func (i Identity) binds(f Facts) *Refusal {
	switch {
	case f.Pod.UID == "":
		return refuse(Unbound, "the pod of the caller is not known, so the token may belong to another pod")
	case i.PodUID != f.Pod.UID:
		return refuse(WrongPod, "it was made for pod %q with uid %q, and the caller runs in the pod with uid %q", i.PodName, i.PodUID, f.Pod.UID)
	case f.Pod.Name != "" && i.PodName != f.Pod.Name:
		return refuse(WrongPod, "it was made for pod %q, and the caller runs in %q", i.PodName, f.Pod.Name)
	case f.Pod.Namespace != "" && i.Namespace != f.Pod.Namespace:
		return refuse(WrongAccount, "it was made for namespace %q, and the caller runs in %q", i.Namespace, f.Pod.Namespace)
	case f.Pod.ServiceAccount != "" && i.ServiceAccount != f.Pod.ServiceAccount:
		return refuse(WrongAccount, "it was made for service account %q, and the caller's is %q", i.ServiceAccount, f.Pod.ServiceAccount)
	}
	return nil
}
