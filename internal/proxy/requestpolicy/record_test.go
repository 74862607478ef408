package requestpolicy

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	fsapi "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"
	iscsiapi "github.com/kubernetes-csi/csi-proxy/client/api/iscsi/v1alpha2"
	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
)

func TestARecordGivesTheDecisionThatTheCallWasGiven(t *testing.T) {
	e := evaluator(t, policy.Options{}, nil)
	for _, call := range []struct {
		c     *apiserver.Call
		named bool
		rule  string
	}{{mkdir(), false, ""}, {stop(), false, "PN001"}, {stop(), true, ""}} {
		c, s := call.c, driver()
		s.Named = call.named
		in, err := FromRecord(record(t, c, s), s.Named)
		if err != nil {
			t.Fatal(err)
		}
		if live, again := e.Decide(t.Context(), c, s), e.DecideInput(t.Context(), in); live.Rule != call.rule || live.Rule != again.Rule || live.Reason != again.Reason {
			t.Errorf("live %+v, again %+v", live, again)
		}
	}
}

// What a rule can ask of a caller is the same from its record: each of these differs from the others in the input.
func TestCallersAreTheSameFromTheirRecords(t *testing.T) {
	inputs := map[string]string{}
	for name, change := range map[string]func(*caller.Caller){
		"a driver":                     func(*caller.Caller) {},
		"with a token":                 func(p *caller.Caller) { p.Token = true },
		"in a HostProcess container":   func(p *caller.Caller) { p.Container.HostProcess = true },
		"in another container":         func(p *caller.Caller) { p.Container.Name = "sidecar" },
		"of another image":             func(p *caller.Caller) { p.Container.Image = "registry.example/driver@sha256:00" },
		"whose account is not known":   func(p *caller.Caller) { p.Pod.ServiceAccount = "" },
		"whose container is not known": func(p *caller.Caller) { p.Container = caller.Container{} },
		"of the node":                  func(p *caller.Caller) { p.Assurance, p.Pod, p.Container = "process", caller.Pod{}, caller.Container{} },
		"of the node, without a name": func(p *caller.Caller) {
			p.Assurance, p.Pod, p.Container, p.User = "process", caller.Pod{}, caller.Container{}, caller.User{SID: "uid:0"}
		},
		"nobody":                        func(p *caller.Caller) { *p = caller.Caller{Assurance: "none"} },
		"started within a second":       func(p *caller.Caller) { p.Process.Start = p.Process.Start.Add(-999 * time.Millisecond) },
		"with a name that acts":         func(p *caller.Caller) { p.Process.Exe = "C:\\\u202e\x1b\\<&>\u2028.exe" },
		"in a container without a name": func(p *caller.Caller) { p.Container = caller.Container{ID: "c0ffee"} },
	} {
		s := driver()
		change(&s.Caller)
		live, err := Input(mkdir(), s)
		if err != nil {
			t.Fatal(err)
		}
		replayed, err := FromRecord(record(t, mkdir(), s), s.Named)
		if err != nil || live.Compare(replayed) != 0 {
			t.Errorf("%s: %v\nlive   %v\nrecord %v", name, err, live, replayed)
		}
		if other, there := inputs[live.String()]; there {
			t.Errorf("%s is %s", name, other)
		}
		inputs[live.String()] = name
	}
}

func TestTheTimeOfARecordIsWhenTheCallArrived(t *testing.T) {
	r := record(t, mkdir(), driver())
	now := func() string {
		in, err := FromRecord(r, false)
		if err != nil {
			t.Fatal(err)
		}
		return string(in.(ast.Object).Get(ast.StringTerm("now")).Value.(ast.String))
	}
	if got := now(); got != "2026-01-02T03:04:05Z" {
		t.Errorf("of its end: %s", got)
	}
	r.Outcome, r.Time = nil, arrived
	if got := now(); got != "2026-01-02T03:04:05Z" {
		t.Errorf("of the intent: %s", got)
	}
}

func TestTheMethodIsTheOneThatWasServed(t *testing.T) {
	for full, want := range map[string]string{"/v1alpha1.Filesystem/LinkPath": "LinkPath", "LinkPath": "LinkPath", "": ""} {
		r := record(t, mkdir(), driver())
		r.What.FullMethod = full
		in, err := FromRecord(r, false)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(in.(ast.Object).Get(keyMethod).Value.(ast.String)); got != want {
			t.Errorf("%q: %q", full, got)
		}
	}
	call := callOf(`\\.\pipe\other`, "/x.Y/Z", nil)
	call.Method, call.FullMethod = "/x.Y/Z", "/x.Y/Z"
	s := driver()
	live, err := Input(call, s)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := FromRecord(record(t, call, s), s.Named); err != nil || live.Compare(again) != 0 {
		t.Errorf("passed on unread: %v, %v", again, err)
	}
}

func TestARecordThatDoesNotTellIsRefused(t *testing.T) {
	for name, change := range map[string]func(*audit.Event){
		"of a connection":                    func(e *audit.Event) { e.Type = audit.TypeConnection },
		"of an admission":                    func(e *audit.Event) { e.Type = audit.TypeAdmission },
		"of nobody":                          func(e *audit.Event) { e.Who = nil },
		"of nothing":                         func(e *audit.Event) { e.What = nil },
		"of a method that is not known":      func(e *audit.Event) { e.What.Method = "" },
		"with parameters that were cut":      func(e *audit.Event) { e.What.Params = json.RawMessage(`"[9999 bytes cut]"`) },
		"with parameters that are null":      func(e *audit.Event) { e.What.Params = json.RawMessage(`null`) },
		"with parameters that are a list":    func(e *audit.Event) { e.What.Params = json.RawMessage(`[1]`) },
		"with parameters that are torn":      func(e *audit.Event) { e.What.Params = json.RawMessage(`{"a":`) },
		"with a list of secrets that is cut": func(e *audit.Event) { e.What.Redacted = []string{"[9 entries cut]"} },
		"with a secret that is nowhere":      func(e *audit.Event) { e.What.Redacted = []string{"path.password"} },
	} {
		r := record(t, mkdir(), driver())
		change(r)
		if in, err := FromRecord(r, false); err == nil || in != nil || errors.Is(err, ErrNotShown) {
			t.Errorf("%s: %v, %v", name, in, err)
		}
	}
}

func TestWhatNoPolicyWasShownIsRefusedAgain(t *testing.T) {
	for name, call := range map[string]any{
		"a long text":              &fsapi.MkdirRequest{Path: strings.Repeat("x", 1025)},
		"a long text in a message": &iscsiapi.AddTargetPortalRequest{TargetPortal: &iscsiapi.TargetPortal{TargetAddress: strings.Repeat("x", 5000)}},
	} {
		group := map[bool]string{true: "filesystem", false: "iscsi"}[name == "a long text"]
		if _, err := FromRecord(record(t, callOf(group, "X", call), driver()), false); !errors.Is(err, ErrNotShown) {
			t.Errorf("%s: %v", name, err)
		}
	}
	r := record(t, mkdir(), driver())
	r.Who.Process.Exe = strings.Repeat("x", 1025)
	if _, err := FromRecord(r, false); !errors.Is(err, ErrNotShown) {
		t.Errorf("a long program: %v", err)
	}
}

func TestSecretsInListsAreWithheldFromEachEntry(t *testing.T) {
	document := map[string]any{"list": []any{map[string]any{"a": "s", "b": 1}, map[string]any{"a": "s"}}, "in": map[string]any{"a": "s"}}
	for _, path := range []string{"list.a", "list.a", "in.a"} {
		if !withhold(document, strings.Split(path, ".")) {
			t.Errorf("%s is not there", path)
		}
	}
	if got, _ := json.Marshal(document); strings.Contains(string(got), "s\"}") || strings.Contains(string(got), `"a"`) {
		t.Errorf("left: %s", got)
	}
}

// FuzzFromRecord looks for a record that makes the reader panic, or an input that is not of the documented form.
func FuzzFromRecord(f *testing.F) {
	f.Add(`{"path":"x"}`, "path", "Mkdir")
	f.Add(`{"a":[{"b":[1,null]}]}`, "a.b", "")
	f.Fuzz(func(t *testing.T, params, redacted, method string) {
		e := &audit.Event{
			Type: audit.TypeRequest, Who: &audit.Who{Assurance: "pod"},
			What: &audit.What{Group: "filesystem", Method: method, FullMethod: "/v1.F/" + method, Params: json.RawMessage(params), Redacted: []string{redacted}},
		}
		in, err := FromRecord(e, false)
		if err != nil {
			return
		}
		for _, key := range []*ast.Term{keyNamed, keyPeer, keyPipe, keyGroup, keyVersion, keyMethod, keyOperation, keyRequest, keyNode, keyNow} {
			if in.(ast.Object).Get(key) == nil {
				t.Errorf("%v is missing", key)
			}
		}
	})
}
