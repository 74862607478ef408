package acl

import (
	"strings"
	"testing"
)

// FuzzExe looks for a path that is allowed by a directory without lying beneath it.
func FuzzExe(f *testing.F) {
	for _, seed := range []string{driver, `C:\dir\x`, `c:\DIR\y\z.exe`, `C:\dir`, `C:\dirx\y`, `C:\dir\..\x`, "C:\\dir\\\u212a", `\\?\C:\dir\x`, "/dir/x", ""} {
		f.Add(seed)
	}
	policy, err := New(Spec{Rules: []Rule{{"r", []string{"*"}, []string{"*"}, []CallerPattern{{Exe: `C:\dir\*`}}, nil}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, exe string) {
		if !policy.Decide(Request{"disk", "v1", "Rescan", Caller{"process", "", exe}}).Allowed {
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
		policy, err := New(Spec{Rules: []Rule{{"r", []string{pipe}, []string{operation}, []CallerPattern{{user, exe, assurance}}, nil}}})
		if err != nil {
			return
		}
		if policy.Decide(Request{"filesystem", "v1", operation, Caller{"none", user, exe}}).Allowed {
			t.Error("an unidentified caller is allowed")
		}
		if !strings.HasPrefix(pipe, "system-") && policy.Decide(Request{"system", "v1alpha1", operation, Caller{"pod", user, exe}}).Allowed {
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
		{"s", []string{other, "*"}, []string{"/a.B/*", "*"}, []CallerPattern{{User: "S-1-5-18"}}, nil},
	}})
	if err != nil {
		f.Fatal(err)
	}
	caller := Caller{"sid", "S-1-5-18", ""}
	f.Fuzz(func(t *testing.T, method, group string) {
		if policy.Decide(Request{other, "", method, caller}).Allowed && (strings.Count(method, "/") != 2 || method[0] != '/' || strings.ContainsAny(method, "%?*\\ \n") || strings.Contains(method, "..")) {
			t.Errorf("method %q is allowed", method)
		}
		if !isFullName(group) && strings.Contains(method, "/") && policy.Decide(Request{group, "v1", method, caller}).Allowed && !strings.HasPrefix(method, "/a.B/") {
			t.Errorf("unknown method %q of %q is allowed", method, group)
		}
		if isFullName(group) && policy.Decide(Request{group, "", "/a.B/C", caller}).Allowed && !strings.EqualFold(group, other) {
			t.Errorf("pipe %q is covered", group)
		}
	})
}
