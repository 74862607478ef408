package acl

import (
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/caller"
)

func isTrue() *bool  { yes := true; return &yes }
func isFalse() *bool { yes := false; return &yes }

// podCaller is a driver of which everything is known.
var podCaller = caller.Caller{Assurance: "pod", User: caller.User{SID: "S-1-5-93-2-1"}, Process: caller.Process{Exe: `C:\driver\node.exe`}, Pod: caller.Pod{Namespace: "kube-system", ServiceAccount: "node-sa", Name: "node-x"}, Container: caller.Container{Name: "driver", Image: "r.io/team-a/driver:v1@" + digest}}

func with(change func(*caller.Caller)) caller.Caller {
	c := podCaller
	change(&c)
	return c
}

func policyFor(t *testing.T, pattern CallerPattern) *Policy {
	t.Helper()
	p, err := New(Spec{Rules: []Rule{{Name: "r", Pipes: []string{"disk-v1"}, Operations: []string{"Rescan"}, Callers: []CallerPattern{pattern}}}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPodPatterns(t *testing.T) {
	namespace := CallerPattern{Namespace: "kube-system"}
	account := CallerPattern{ServiceAccount: "kube-system/node-sa"}
	tests := []struct {
		name    string
		pattern CallerPattern
		caller  caller.Caller
		want    bool
	}{
		{"a namespace alone", namespace, podCaller, true},
		{"a service account with its namespace", account, podCaller, true},
		{"a service account beside its namespace", CallerPattern{Namespace: "kube-system", ServiceAccount: "node-sa"}, podCaller, true},
		{"a namespace of a caller whose service account is not known", namespace, with(func(c *caller.Caller) { c.Pod.ServiceAccount = "" }), true},
		{"every field", CallerPattern{
			User: "S-1-5-93-2-1", Exe: `C:\driver\*`, Assurance: "pod", Namespace: "kube-system", ServiceAccount: "node-sa", Container: "driver",
			Image: "r.io/team-a/*", HostProcess: isFalse(),
		}, podCaller, true},
		{"a HostProcess container", CallerPattern{Namespace: "kube-system", HostProcess: isTrue()}, with(func(c *caller.Caller) { c.Container.HostProcess = true }), true},
		{"a caller with a token", CallerPattern{Namespace: "kube-system", Token: true}, with(func(c *caller.Caller) { c.Token = true }), true},

		{"another namespace", namespace, with(func(c *caller.Caller) { c.Pod.Namespace = "default" }), false},
		{"a namespace that begins alike", CallerPattern{Namespace: "team-a"}, with(func(c *caller.Caller) { c.Pod.Namespace = "team-ab" }), false},
		{"a namespace that the pattern begins with", CallerPattern{Namespace: "team-ab"}, with(func(c *caller.Caller) { c.Pod.Namespace = "team-a" }), false},
		{"a namespace in capitals", namespace, with(func(c *caller.Caller) { c.Pod.Namespace = "Kube-System" }), false},
		{"a namespace with the Kelvin sign", namespace, with(func(c *caller.Caller) { c.Pod.Namespace = "\u212aube-system" }), false},
		{"a namespace with the long s", namespace, with(func(c *caller.Caller) { c.Pod.Namespace = "kube-\u017fystem" }), false},
		{"a namespace with a space", namespace, with(func(c *caller.Caller) { c.Pod.Namespace = "kube-system " }), false},
		{"a namespace that is not known", namespace, with(func(c *caller.Caller) { c.Pod.Namespace = "" }), false},
		{"a pod that is not proven", namespace, with(func(c *caller.Caller) { c.Assurance = "process" }), false},
		{"an assurance nobody has heard of", namespace, with(func(c *caller.Caller) { c.Assurance = "Pod" }), false},
		{"a service account that is not known", account, with(func(c *caller.Caller) { c.Pod.ServiceAccount = "" }), false},
		{"a service account of the same name in another namespace", account, with(func(c *caller.Caller) { c.Pod.Namespace = "team-a" }), false},
		{"a service account that begins alike", account, with(func(c *caller.Caller) { c.Pod.ServiceAccount = "node-sa2" }), false},
		{"a service account with its namespace for a name", account, with(func(c *caller.Caller) { c.Pod.ServiceAccount = "kube-system/node-sa" }), false},
		{"a sidecar", CallerPattern{Namespace: "kube-system", Container: "driver"}, with(func(c *caller.Caller) { c.Container.Name = "sidecar" }), false},
		{"a container that is not known", CallerPattern{Namespace: "kube-system", Container: "driver"}, with(func(c *caller.Caller) { c.Container.Name = "" }), false},
		{"an image that is not known", CallerPattern{Namespace: "kube-system", Image: "r.io/team-a/*"}, with(func(c *caller.Caller) { c.Container.Image = "" }), false},
		{"a HostProcess container where none is wanted", CallerPattern{Namespace: "kube-system", HostProcess: isFalse()}, with(func(c *caller.Caller) { c.Container.HostProcess = true }), false},
		{"no HostProcess container where one is wanted", CallerPattern{Namespace: "kube-system", HostProcess: isTrue()}, podCaller, false},
		{"a process of the node is not a container that is no HostProcess container", CallerPattern{User: "S-1-5-18", HostProcess: isFalse()},
			caller.Caller{Assurance: "process", User: caller.User{SID: "S-1-5-18"}, Process: caller.Process{Exe: `C:\x.exe`}}, false},
		{"a caller without the token", CallerPattern{Namespace: "kube-system", Token: true}, podCaller, false},
		{"a user alone says nothing of other users", CallerPattern{User: "S-1-5-18", Namespace: "kube-system"}, podCaller, false},
		{"an exe that Unicode folds to the pattern's", CallerPattern{Namespace: "kube-system", Exe: `C:\disks\x.exe`},
			with(func(c *caller.Caller) { c.Process.Exe = "C:\\di\u017f\u212as\\x.exe" }), false},
		{"nothing at all", namespace, caller.Caller{}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := policyFor(t, tt.pattern).Decide(access.Call{Group: "disk", Version: "v1", Operation: "Rescan", Caller: tt.caller})
			if d.Allowed != tt.want {
				t.Errorf("allowed %v, want %v: %s", d.Allowed, tt.want, d.Reason)
			}
		})
	}
}

func TestImages(t *testing.T) {
	const other = "sha256:ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
	tests := []struct {
		pattern, image string
		want           bool
	}{
		{"r.io/a/x:v1", "r.io/a/x:v1", true},
		{"r.io/a/x@" + digest, "r.io/a/x@" + digest, true},
		{"r.io/a/x@" + digest, "r.io/a/x:v1@" + digest, true},
		{digest, "r.io/a/x:v1@" + digest, true},
		{"r.io/a/*", "r.io/a/x/y:v1", true},
		{"r.io/a/x:*", "r.io/a/x:v1", true},
		{"r.io/a/x:v1.*", "r.io/a/x:v1.30", true},
		{"r.io:5000/a/x@*", "r.io:5000/a/x@" + digest, true},

		{"r.io/a/x:v1", "r.io/a/x:v10", false},
		{"r.io/a/x:v1", "r.io/a/x", false},
		{"r.io/a/x", "r.io/a/x:latest", false},
		{"r.io/a/x:v1", "R.io/a/x:v1", false},
		{"r.io/a/x:v1", "evil.io/r.io/a/x:v1", false},
		{"r.io/a/x:v1", "r.io/a/x:v1@" + other, false}, // the tag is not what runs
		{"r.io/a/x:v1.*", "r.io/a/x:v1.2@" + other, false},
		{"r.io/a/x:v1-*", "r.io/a/x:v1-2@" + other, false},
		{"r.io/a/x:*", "r.io/a/x:v1@" + other, true},
		{"r.io/a/*", "r.io/a/x:v1/evil", false},
		{"r.io/a/x@" + digest, "r.io/a/x:v1", false},
		{"r.io/a/x@" + digest, "r.io/a/x@" + other, false},
		{"r.io/a/x@" + digest, "r.io/b/x@" + digest, false},
		{"r.io/a/x:v1@" + digest, "r.io/a/x:v2@" + digest, false},
		{digest, "r.io/a/x:" + digest[7:], false},
		{digest, digest, false}, // docker.io/library/sha256 with a tag, to many a runtime
		{"r.io/*", digest, false},
		{digest, "r.io/" + digest[7:] + "/x:v1", false},
		{"r.io/a/*", "r.io/ab/x", false},
		{"r.io/a/*", "r.io/a/", false},
		{"r.io/a/*", "r.io/a/../b/x", false},
		{"r.io/a/*", "evil.io/r.io/a/x", false},
		{"r.io/a/x:v1.*", "r.io/a/x:v10.1", false},
		{"r.io/a/x:*", "r.io/a/x-evil:v1", false},
		{"r.io/a/x:*", "r.io/a/x@" + digest, false},
		{"r.io/a/*", "r.io/a/x y", false},
		{"r.io/a/*", "r.io/a/\u212a", false},
		{"r.io/a/*", "", false},
	}
	for _, tt := range tests {
		p := policyFor(t, CallerPattern{Namespace: "kube-system", Image: tt.pattern})
		c := with(func(c *caller.Caller) { c.Container.Image = tt.image })
		if got := p.Decide(access.Call{Group: "disk", Version: "v1", Operation: "Rescan", Caller: c}).Allowed; got != tt.want {
			t.Errorf("pattern %q, image %q: allowed %v, want %v", tt.pattern, tt.image, got, tt.want)
		}
	}
}

func TestNewRefusesCallers(t *testing.T) {
	tests := []struct {
		name    string
		pattern CallerPattern
		want    string
	}{
		{"a container of any pod", CallerPattern{Container: "driver"}, "every caller"},
		{"an image in any pod", CallerPattern{Image: "r.io/a/x@" + digest}, "every caller"},
		{"all HostProcess containers", CallerPattern{HostProcess: isTrue()}, "every caller"},
		{"all other containers", CallerPattern{HostProcess: isFalse()}, "every caller"},
		{"whoever has a token", CallerPattern{Token: true}, "every caller"},
		{"every pod", CallerPattern{Assurance: "pod"}, "every caller"},
		{"a service account of no namespace", CallerPattern{ServiceAccount: "node-sa"}, "needs its namespace"},
		{"a service account of an empty namespace", CallerPattern{ServiceAccount: "/node-sa"}, "want NAMESPACE/NAME"},
		{"an empty service account", CallerPattern{ServiceAccount: "kube-system/"}, "want NAMESPACE/NAME"},
		{"a service account of another namespace", CallerPattern{Namespace: "a", ServiceAccount: "b/node-sa"}, "not of namespace"},
		{"a service account with two slashes", CallerPattern{ServiceAccount: "a/b/c"}, "service account"},
		{"the user name of a service account", CallerPattern{Namespace: "a", ServiceAccount: "system:serviceaccount:a:b"}, "service account"},
		{"all service accounts", CallerPattern{Namespace: "a", ServiceAccount: "*"}, "service account"},
		{"all namespaces", CallerPattern{Namespace: "*"}, "namespace"},
		{"the beginning of a namespace", CallerPattern{Namespace: "team-*"}, "namespace"},
		{"a namespace in capitals", CallerPattern{Namespace: "Kube-System"}, "namespace"},
		{"a namespace with the Kelvin sign", CallerPattern{Namespace: "\u212aube-system"}, "namespace"},
		{"a namespace with a space", CallerPattern{Namespace: "kube-system "}, "namespace"},
		{"a blank namespace", CallerPattern{Namespace: " "}, "namespace"},
		{"a namespace that is too long", CallerPattern{Namespace: strings.Repeat("a", 64)}, "namespace"},
		{"a container in capitals", CallerPattern{Namespace: "a", Container: "Driver"}, "container"},
		{"a namespace with too little assurance", CallerPattern{Namespace: "a", Assurance: "process"}, "assurance"},
		{"a container with too little assurance", CallerPattern{User: "S-1-5-18", Container: "a", Assurance: "sid"}, "assurance"},
		{"all images", CallerPattern{Namespace: "a", Image: "*"}, "image"},
		{"a prefix without a boundary", CallerPattern{Namespace: "a", Image: "r.io/team-a*"}, "team-ab"},
		{"a prefix that ends in a dash of a name", CallerPattern{Namespace: "a", Image: "r.io/team-*"}, "team-ab"},
		{"a part of a registry", CallerPattern{Namespace: "a", Image: "r.*"}, "team-ab"},
		{"a port of a registry", CallerPattern{Namespace: "a", Image: "r.io:*"}, "team-ab"},
		{"a star in front", CallerPattern{Namespace: "a", Image: "*/driver:v1"}, "image"},
		{"a star in the middle", CallerPattern{Namespace: "a", Image: "r.io/*/driver:v1"}, "image"},
		{"two stars", CallerPattern{Namespace: "a", Image: "r.io/**"}, "image"},
		{"two slashes", CallerPattern{Namespace: "a", Image: "r.io//*"}, "image"},
		{"any digest of a tag", CallerPattern{Namespace: "a", Image: "r.io/a:v1@*"}, "image"},
		{"half a digest", CallerPattern{Namespace: "a", Image: "r.io/a@sha256:0123"}, "image"},
		{"a digest in capitals", CallerPattern{Namespace: "a", Image: "r.io/a@" + strings.ToUpper(digest)}, "image"},
		{"a beginning of a digest", CallerPattern{Namespace: "a", Image: "r.io/a@sha256:*"}, "image"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := New(Spec{Rules: []Rule{{Name: "r", Pipes: []string{"*"}, Operations: []string{"*"}, Callers: []CallerPattern{tt.pattern}}}})
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "rules[0].callers[0]: ") {
				t.Errorf("got %v, want a fault that says %q", err, tt.want)
			}
		})
	}
}
