package requestpolicy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	diskapi "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	fsapi "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"
	smbapi "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"
	sysapi "github.com/kubernetes-csi/csi-proxy/client/api/system/v1alpha1"
	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
)

func stop() *apiserver.Call {
	return callOf("system", "StopService", &sysapi.StopServiceRequest{Name: "MSiSCSI"})
}

func mkdir() *apiserver.Call { return callOf("filesystem", "Mkdir", &fsapi.MkdirRequest{Path: `C:\x`}) }

func TestBuiltInPolicyDecides(t *testing.T) {
	e := evaluator(t, policy.Options{}, nil)
	for name, c := range map[string]struct {
		call *apiserver.Call
		rule string
	}{
		"an ordinary call":     {mkdir(), ""},
		"a service":            {stop(), "PN001"},
		"a disk":               {callOf("disk", "PartitionDisk", &diskapi.PartitionDiskRequest{}), "PN002"},
		"a disk offline":       {callOf("disk", "SetDiskState", &diskapi.SetDiskStateRequest{}), "PN003"},
		"a disk online":        {callOf("disk", "SetDiskState", &diskapi.SetDiskStateRequest{IsOnline: true}), ""},
		"a service unread":     {callOf("system", "StopService", nil), "PN001"},
		"a group without name": {callOf("", "StopService", nil), "PN000"},
	} {
		d := e.Decide(t.Context(), c.call, driver())
		if d.Rule != c.rule || d.Allowed() != (c.rule == "") || d.Revision == "" || d.Reason == "" || d.Err != nil {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

func TestWhoeverIsNamedIsLeftToTheAccessList(t *testing.T) {
	e := evaluator(t, policy.Options{}, nil)
	for name, c := range map[string]*apiserver.Call{
		"a service": stop(), "a service unread": callOf("system", "StopService", nil), "a disk": callOf("disk", "PartitionDisk", &diskapi.PartitionDiskRequest{}),
		"a disk offline": callOf("disk", "SetDiskState", &diskapi.SetDiskStateRequest{}), "an ordinary call": mkdir(),
	} {
		s := driver()
		s.Named = true
		if d := e.Decide(t.Context(), c, s); !d.Allowed() {
			t.Errorf("%s: %+v", name, d)
		}
	}
	s := driver()
	s.Named = true
	if d := e.Decide(t.Context(), callOf("", "StopService", nil), s); d.Rule != "PN000" {
		t.Errorf("what no rule can read: %+v", d)
	}
}

// endless takes longer than anyone waits.
const endless = `decision := {"allowed": true, "findings": []} if {
	a := ["a", "b", "c", "d", "e", "f", "g", "h"]
	some b in a; some c in a; some d in a; some e in a; some f in a; some g in a; some h in a; some i in a
	concat("", [b, c, d, e, f, g, h, i]) == input.pipe
}`

// doubling asks for 2 GiB.
var doubling = func() string {
	text := `decision := {"allowed": s30 != "", "findings": []}` + "\n\ns0 := \"xx\"\n"
	for i := range 30 {
		text += fmt.Sprintf("\ns%d := concat(\"\", [s%d, s%d])\n", i+1, i, i)
	}
	return text
}()

// Whatever keeps a policy from answering is a denial that says what it was.
func TestAPolicyThatDoesNotAnswerRefuses(t *testing.T) {
	for name, c := range map[string]struct{ text, code string }{
		"undefined":                {`decision := {"allowed": true, "findings": []} if input.pipe == "other"`, CodeUndefined},
		"a boolean":                {`decision := true`, CodeType},
		"a text":                   {`decision := "allow"`, CodeType},
		"null":                     {`decision := null`, CodeType},
		"a set":                    {`decision := {"allowed"}`, CodeType},
		"allowed as a text":        {`decision := {"allowed": "true", "findings": []}`, CodeType},
		"allowed as a number":      {`decision := {"allowed": 1, "findings": []}`, CodeType},
		"no findings":              {`decision := {"allowed": true}`, CodeType},
		"findings as an object":    {`decision := {"allowed": true, "findings": {}}`, CodeType},
		"an unknown effect":        {`decision := {"allowed": true, "findings": [{"code": "X", "effect": "allow"}]}`, CodeType},
		"a key more":               {`decision := {"allowed": true, "findings": [], "mode": "LogOnly"}`, CodeType},
		"allowed and denied":       {`decision := {"allowed": true, "findings": [{"code": "X", "effect": "deny"}]}`, CodeType},
		"refused without a reason": {`decision := {"allowed": false, "findings": []}`, CodeUnexplained},
		"two values":               {"decision := {\"allowed\": true, \"findings\": []} if input.pipe\n\ndecision := {\"allowed\": false, \"findings\": []} if input.node", CodeConflict},
		"a builtin that fails":     {`decision := {"allowed": to_number(input.pipe) == 1, "findings": []}`, CodeBuiltin},
		"a loop":                   {endless, CodeTimeout},
		"a text that doubles":      {doubling, CodeMemory},
		"a long message":           {`decision := {"allowed": false, "findings": [{"code": "X", "effect": "deny", "message": concat("", [m, m, m])}]}` + "\n\nm := \"" + strings.Repeat("m", 1000) + `"`, CodeType},
	} {
		t.Run(name, func(t *testing.T) {
			o := policy.Options{Timeout: time.Minute} // a busy machine must not make it the reason
			if c.code == CodeTimeout {
				o.Timeout = 50 * time.Millisecond
			}
			d := unchecked(t, o, c.text).Decide(t.Context(), mkdir(), driver())
			if d.Allowed() || d.Rule != c.code || d.Reason == "" || d.Revision == "" {
				t.Errorf("%+v", d)
			}
		})
	}
}

func TestACodeThatWasComputedIsNoLabel(t *testing.T) {
	text := `decision := {"allowed": false, "findings": [{"code": upper(concat("", ["X", substring(input.request.path, 3, 1)])), "effect": "deny"}]}`
	d := unchecked(t, policy.Options{}, text).Decide(t.Context(), mkdir(), driver())
	if d.Allowed() || !strings.HasPrefix(d.Rule, "X") || d.Label() != "other" {
		t.Errorf("%q, label %q", d.Rule, d.Label())
	}
	if d := evaluator(t, policy.Options{}, nil).Decide(t.Context(), stop(), driver()); d.Rule != "PN001" || d.Label() != "PN001" {
		t.Errorf("%q, label %q", d.Rule, d.Label())
	}
	if d := (Decision{}); d.Label() != "" {
		t.Errorf("nothing has the label %q", d.Label())
	}
}

func TestWithoutPoliciesEverythingIsRefused(t *testing.T) {
	e, err := New(policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if d := e.Decide(t.Context(), mkdir(), driver()); d.Allowed() || d.Rule != CodeNoPolicy || d.Revision != "" {
		t.Errorf("%+v", d)
	}
	if (Decision{}).Allowed() {
		t.Error("no decision is a permission")
	}
}

func TestACallerThatLeftIsRefused(t *testing.T) {
	left, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	for _, ctx := range []context.Context{left, late} {
		if d := evaluator(t, policy.Options{}, nil).Decide(ctx, mkdir(), driver()); d.Allowed() || d.Rule != CodeCanceled {
			t.Errorf("%v: %+v", ctx.Err(), d)
		}
	}
}

func TestAPanicRefuses(t *testing.T) {
	e := evaluator(t, policy.Options{}, nil)
	if d := e.Decide(t.Context(), mkdir(), nil); d.Allowed() || d.Rule != CodePanic || strings.Contains(d.Reason, "goroutine") {
		t.Errorf("%+v", d)
	}
}

func TestAnInputThatIsTooLargeIsRefused(t *testing.T) {
	e := evaluator(t, policy.Options{}, nil)
	large := ast.NewObject(ast.Item(ast.StringTerm("a"), ast.StringTerm(strings.Repeat("x", 256<<10))))
	for name, in := range map[string]ast.Value{"large": large, "none": nil, "a reference": ast.MustParseRef("data.x")} {
		if d := e.DecideInput(t.Context(), in); d.Allowed() || d.Rule != CodeInputSize {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// Evaluations beyond the bound wait for as long as one may take, and are then refused.
func TestEvaluationsAreBounded(t *testing.T) {
	e := unchecked(t, policy.Options{Timeout: 10 * time.Millisecond, MaxConcurrent: 1}, endless)
	codes := make([]string, 100) // each ends after 10 ms at the earliest, and a wait for a slot after 200 ms
	var all sync.WaitGroup
	for i := range codes {
		all.Go(func() { codes[i] = e.Decide(t.Context(), mkdir(), driver()).Rule })
	}
	all.Wait()
	counts := map[string]int{}
	for _, code := range codes {
		counts[code]++
	}
	if counts[CodeTimeout] == 0 || counts[CodeOverload] == 0 || counts[CodeTimeout]+counts[CodeOverload] != len(codes) {
		t.Errorf("%v", counts)
	}
}

func TestEveryFaultOfTheEngineHasACode(t *testing.T) {
	codes := map[string]bool{}
	for reason, code := range failures {
		if d := failed(&policy.Error{Reason: reason, Err: errors.New("s3cret")}, "r"); d.Rule != code || d.Allowed() || strings.Contains(d.Reason, "s3cret") {
			t.Errorf("%s: %+v", reason, d)
		}
		codes[code] = true
	}
	if len(failures) != 12 || len(codes) != 12 {
		t.Errorf("%d reasons, %d codes", len(failures), len(codes))
	}
	for _, err := range []error{errors.New("x"), &policy.Error{Reason: "new", Err: errors.New("x")}} {
		if d := failed(err, "r"); d.Rule != CodeInternal {
			t.Errorf("%v: %+v", err, d)
		}
	}
}

func TestPoliciesThatPermitWhatNoneMayAreNotActivated(t *testing.T) {
	for name, text := range map[string]string{
		"everything":            `decision := {"allowed": true, "findings": []}`,
		"services":              `decision := {"allowed": input.group == "system", "findings": []}`,
		"starting services":     `decision := {"allowed": input.operation == "StartService", "findings": []}`,
		"what has no group":     "decision := {\"allowed\": ok, \"findings\": []}\n\ndefault ok := false\n\nok if not input.group",
		"whoever is not named":  "decision := {\"allowed\": ok, \"findings\": []}\n\ndefault ok := false\n\nok if input.named == false",
		"whoever is not denied": "decision := {\"allowed\": ok, \"findings\": []}\n\ndefault ok := false\n\nok if not input.named == false",
		"a name that is a text": "decision := {\"allowed\": ok, \"findings\": []}\n\ndefault ok := false\n\nok if input.named == \"true\"",
		"nothing to be asked":   `decision := {"allowed": false, "findings": []} if input.group == "system"`,
		"another entry point":   `allow := false`,
	} {
		t.Run(name, func(t *testing.T) {
			e, err := New(policy.Options{})
			if err != nil {
				t.Fatal(err)
			}
			files := map[string]string{"p.rego": "package pipeguard.node\n\n" + text, "p_test.rego": "package p_test\n\ntest_p if true"}
			if _, err := e.Activate(t.Context(), policy.Modules{Files: files}); err == nil {
				t.Error("it was activated")
			}
		})
	}
}

func TestAFailedActivationLeavesTheOldPolicy(t *testing.T) {
	e := evaluator(t, policy.Options{}, nil)
	before, _ := e.Active()
	if _, err := e.Activate(t.Context(), policy.Modules{Files: map[string]string{"p.rego": "package pipeguard.node\n\nx"}}); err == nil {
		t.Fatal("it was activated")
	}
	if after, ok := e.Active(); !ok || after.Revision() != before.Revision() {
		t.Error("the old policy is gone")
	}
	if d := e.Decide(t.Context(), stop(), driver()); d.Rule != "PN001" {
		t.Errorf("%+v", d)
	}
}

// A rule that tries to show what it was given can only show what is in the input.
func TestAPolicyCannotShowASecret(t *testing.T) {
	e := unchecked(t, policy.Options{}, `decision := {"allowed": false, "findings": [{"code": "X", "effect": "deny", "message": sprintf("%v", [input])}]}`)
	d := e.Decide(t.Context(), callOf("smb", "NewSmbGlobalMapping", &smbapi.NewSmbGlobalMappingRequest{RemotePath: "r", Username: "u", Password: "c4n4ry"}), driver())
	if d.Rule != "X" || !strings.Contains(d.Reason, `"remote_path"`) || strings.Contains(d.Reason, "c4n4ry") || strings.Contains(d.Reason, "password") {
		t.Errorf("%+v", d)
	}
}

func TestADenialIsWrittenOverWhatTheAccessListSaid(t *testing.T) {
	acl := audit.Decision{
		Effect: audit.EffectAllow, Rule: "drivers", Reason: "allowed by rule drivers", Mode: "Enforce",
		Policy: &audit.Policy{Name: "acl", Revision: "1"}, Permits: []string{"reformat"},
	}
	e := evaluator(t, policy.Options{}, nil)
	into := acl
	e.Decide(t.Context(), mkdir(), driver()).Record(&into)
	if into.Rule != "drivers" || into.Policy.Name != "acl" || into.Effect != audit.EffectAllow {
		t.Errorf("an allowed call: %+v", into)
	}
	d := e.Decide(t.Context(), stop(), driver())
	d.Record(&into)
	if into.Effect != audit.EffectDeny || into.Rule != "PN001" || into.Policy.Name != PolicyName || into.Policy.Revision != d.Revision || into.Mode != "Enforce" {
		t.Errorf("a denied call: %+v", into)
	}
	if acl.Policy.Name != "acl" {
		t.Error("the policy of another record changed")
	}
	Decision{}.Record(&into)
	if into.Effect != audit.EffectDeny || into.Policy.Revision != "none" {
		t.Errorf("no decision: %+v", into)
	}
}
