package acl

import (
	"regexp"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/caller"
)

// FuzzExe looks for a path that is allowed by a directory without lying beneath it.
func FuzzExe(f *testing.F) {
	for _, seed := range []string{driver, `C:\dir\x`, `c:\DIR\y\z.exe`, `C:\dir`, `C:\dirx\y`, `C:\dir\..\x`, "C:\\dir\\\u212a", `\\?\C:\dir\x`, "/dir/x", ""} {
		f.Add(seed)
	}
	policy, err := New(Spec{Rules: []Rule{{Name: "r", Pipes: []string{"*"}, Operations: []string{"*"}, Callers: []CallerPattern{{Exe: `C:\dir\*`}}}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, exe string) {
		if !policy.Decide(access.Call{Group: "disk", Version: "v1", Operation: "Rescan", Caller: caller.Caller{Assurance: "process", User: caller.User{SID: ""}, Process: caller.Process{Exe: exe}}}).Allowed {
			return
		}
		if len(exe) < 8 || !strings.EqualFold(exe[:7], `C:\dir\`) || strings.Contains(exe, `\..`) && strings.Contains(exe+`\`, `\..\`) || strings.Contains(exe, "/") {
			t.Errorf("%q is allowed", exe)
		}
	})
}

// FuzzPatterns: whatever compiles never covers a caller of whom nothing is known, nor system by a pattern without a group.
func FuzzPatterns(f *testing.F) {
	f.Add("*", "*", "S-1-5-18", driver, "")
	f.Add("*-v1alpha1", "Mkdir", "", `C:\dir\*`, "process")
	f.Add("filesystem-*", "Mkdir", "uid:0", "", "sid")
	f.Fuzz(func(t *testing.T, pipe, operation, user, exe, assurance string) {
		policy, err := New(Spec{Rules: []Rule{{Name: "r", Pipes: []string{pipe}, Operations: []string{operation}, Callers: []CallerPattern{{User: user, Exe: exe, Assurance: assurance}}}}})
		if err != nil {
			return
		}
		if policy.Decide(access.Call{Group: "filesystem", Version: "v1", Operation: operation, Caller: caller.Caller{Assurance: "none", User: caller.User{SID: user}, Process: caller.Process{Exe: exe}}}).Allowed {
			t.Error("an unidentified caller is allowed")
		}
		if !strings.HasPrefix(pipe, "system-") && policy.Decide(access.Call{Group: "system", Version: "v1alpha1", Operation: operation, Caller: caller.Caller{Assurance: "pod", User: caller.User{SID: user}, Process: caller.Process{Exe: exe}}}).Allowed {
			t.Errorf("pipe pattern %q covers system", pipe)
		}
	})
}

// FuzzMethod: a name that reaches a method of another service, by whatever way a server may read it, is not covered.
func FuzzMethod(f *testing.F) {
	for _, seed := range []string{"/a.B/C", "/a.B/*", "/a.B/../c.D/E", "/a.B//C", "/A.B/C", "a.B/C", "/a.B/C%2fD", "/a.B/C?d", "", "*", "/"} {
		f.Add(seed, "disk")
	}
	policy, err := New(Spec{Rules: []Rule{
		{Name: "s", Pipes: []string{other, "*"}, Operations: []string{"/a.B/*", "*"}, Callers: []CallerPattern{{User: "S-1-5-18"}}},
	}})
	if err != nil {
		f.Fatal(err)
	}
	who := caller.Caller{Assurance: "sid", User: caller.User{SID: "S-1-5-18"}, Process: caller.Process{Exe: ""}}
	f.Fuzz(func(t *testing.T, method, group string) {
		if policy.Decide(access.Call{Group: other, Version: "", Operation: method, Caller: who}).Allowed && (strings.Count(method, "/") != 2 || method[0] != '/' || strings.ContainsAny(method, "%?*\\ \n") || strings.Contains(method, "..")) {
			t.Errorf("method %q is allowed", method)
		}
		if !access.IsFullName(group) && strings.Contains(method, "/") && policy.Decide(access.Call{Group: group, Version: "v1", Operation: method, Caller: who}).Allowed && !strings.HasPrefix(method, "/a.B/") {
			t.Errorf("unknown method %q of %q is allowed", method, group)
		}
		if access.IsFullName(group) && policy.Decide(access.Call{Group: group, Version: "", Operation: "/a.B/C", Caller: who}).Allowed && !strings.EqualFold(group, other) {
			t.Errorf("pipe %q is covered", group)
		}
	})
}

var severalSeparators = regexp.MustCompile(`\\+`)

// FuzzPaths looks for a path that a rule covers although it does not lie in the rule's directory, and for a link in place of that
// directory.
func FuzzPaths(f *testing.F) {
	for _, seed := range []string{`C:\dir\x`, `c:\DIR`, `C:\dir-evil\x`, `C:\dir\..\x`, `C:\dir\`, "C:\\d\u0131r\\x", `\\?\C:\dir\x`, "C:/dir/x", "", `C:\dir \x`, `C:\dir\a:b`, `C:\\dir\\x\\`, `\\C:\dir`} {
		f.Add(seed, seed)
	}
	policy, err := New(Spec{Rules: []Rule{{
		Name: "r", Pipes: []string{"*"}, Operations: []string{"*"}, Callers: []CallerPattern{{User: "S-1-5-18"}}, Paths: []string{`C:\dir`},
	}}})
	if err != nil {
		f.Fatal(err)
	}
	isWithin := func(path string) bool {
		path = severalSeparators.ReplaceAllString(path, `\`)
		return len(path) >= 6 && strings.ToUpper(path[:6]) == `C:\DIR` && (len(path) == 6 || path[6] == '\\') && !strings.Contains(path+`\`, `\..\`) && !strings.Contains(path, "/")
	}
	f.Fuzz(func(t *testing.T, source, target string) {
		r := access.Call{Group: "filesystem", Version: "v1", Operation: "CreateSymlink", Caller: caller.Caller{Assurance: "sid", User: caller.User{SID: "S-1-5-18"}}, Paths: []string{source, target}}
		if policy.Decide(r).Allowed && (!isWithin(source) || !isWithin(target) || strings.EqualFold(strings.Trim(severalSeparators.ReplaceAllString(target, `\`), `\`), `C:\dir`)) {
			t.Errorf("a link from %q to %q is allowed", source, target)
		}
	})
}

// FuzzPods: whatever compiles covers nobody of whom no pod is proven, nor anybody of another namespace, nor an image that
// does not begin as the pattern does.
func FuzzPods(f *testing.F) {
	f.Add("kube-system", "node", "driver", "r.io/team-a/*", "r.io/team-ab/x:v1")
	f.Add("a", "a/b", "", "r.io/x:v1", "r.io/x:v1@"+digest)
	f.Add("a", "", "c", digest, "r.io/x@"+digest)
	f.Fuzz(func(t *testing.T, namespace, account, container, pattern, image string) {
		policy, err := New(Spec{Rules: []Rule{{Name: "r", Pipes: []string{"*"}, Operations: []string{"*"}, Callers: []CallerPattern{
			{Namespace: namespace, ServiceAccount: account, Container: container, Image: pattern},
		}}}})
		if err != nil {
			return
		}
		_, name, ok := strings.Cut(account, "/")
		if !ok {
			name = account
		} else if namespace == "" {
			namespace, _, _ = strings.Cut(account, "/")
		}
		who := caller.Caller{Assurance: "pod", Pod: caller.Pod{Namespace: namespace, ServiceAccount: name}, Container: caller.Container{Name: container, Image: image}}
		ask := func(c caller.Caller) bool {
			r := access.Call{Group: "disk", Version: "v1", Operation: "Rescan", Caller: c}
			d := policy.Decide(r)
			if (straightforward(policy.rules, r) != "") != d.Allowed {
				t.Errorf("%+v: the index and the loop differ", c)
			}
			return d.Allowed
		}
		if ask(who) && pattern != "" && !strings.HasPrefix(image, strings.TrimSuffix(pattern, "*")) && !strings.Contains(image, "@"+digestOf(pattern)) && image != pattern {
			t.Errorf("pattern %q covers image %q", pattern, image)
		}
		for _, other := range []caller.Caller{
			{Assurance: "process", Pod: caller.Pod{Namespace: namespace, ServiceAccount: name}, Container: caller.Container{Name: container, Image: image}},
			{Assurance: "pod", Pod: caller.Pod{Namespace: namespace + "x", ServiceAccount: name}, Container: caller.Container{Name: container, Image: image}},
			{Assurance: "pod", Pod: caller.Pod{ServiceAccount: name}, Container: caller.Container{Name: container, Image: image}},
		} {
			if ask(other) {
				t.Errorf("%+v is covered", other)
			}
		}
	})
}

// digestOf returns the digest in a pattern, or what no image has.
func digestOf(pattern string) string {
	if at := strings.Index(pattern, "sha256:"); at >= 0 {
		return pattern[at:]
	}
	return "\x00"
}
