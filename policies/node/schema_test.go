package node_test

import (
	"io/fs"
	"testing"
	"time"

	fsapi "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"
	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/internal/proxy/requestpolicy"
	"github.com/pipeguard/pipeguard/policies/node"
	"github.com/pipeguard/pipeguard/test/policytest"
)

func TestExamplesAreOfTheSchema(t *testing.T) {
	matches := policytest.Matcher(t, node.InputSchema())
	entries, err := fs.ReadDir(node.Examples(), ".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if want := e.Name() != "input"; matches(example(t, e.Name())) != want { // the example of PN000 is of no schema
			t.Errorf("%s: matches is %v", e.Name(), !want)
		}
	}
}

// What the proxy makes is of the schema, whatever is known of the caller.
func TestInputsAreOfTheSchema(t *testing.T) {
	matches := policytest.Matcher(t, node.InputSchema())
	call := &apiserver.Call{Operation: &apiserver.Operation{Group: "filesystem", Name: "Mkdir"}, Version: "v1", Method: "Mkdir", Request: &fsapi.MkdirRequest{Path: `C:\x`}}
	for name, s := range map[string]*requestpolicy.Circumstances{
		"nothing known": {Caller: caller.Caller{Assurance: "none"}},
		"all known": {Named: true, Caller: caller.Caller{
			Assurance: "pod", Process: caller.Process{PID: 1, Start: time.Now(), Exe: "x"}, User: caller.User{SID: "s", Name: "n"},
			Pod: caller.Pod{Namespace: "a", Name: "b", UID: "c", ServiceAccount: "d"}, Container: caller.Container{ID: "e", Name: "f", Image: "g", HostProcess: true}, Token: true,
		}, Pipe: "p", Node: "n", Now: time.Now()},
	} {
		in, err := requestpolicy.Input(call, s)
		if err != nil {
			t.Fatal(err)
		}
		document, err := ast.JSON(in)
		if err != nil || !matches(document) {
			t.Errorf("%s: %v, %v", name, document, err)
		}
	}
}

// Each change of one place makes an input that is refused: a part left out, one too many, and one of the wrong type.
func TestSchemaRefusesEveryDeparture(t *testing.T) {
	matches := policytest.Matcher(t, node.InputSchema())
	refused := 0
	document := example(t, "driver")
	try := func(path, what string) {
		t.Helper()
		if matches(document) {
			t.Errorf("%s: %s: it is of the schema", path, what)
		}
		refused++
	}
	var visit func(path string, v any)
	visit = func(path string, v any) {
		m, ok := v.(map[string]any)
		if !ok || path == ".request" {
			return
		}
		m["unknown"] = "x"
		try(path, "a key more")
		delete(m, "unknown")
		for k, before := range m {
			delete(m, k)
			try(path+"."+k, "left out")
			m[k] = 7.5
			try(path+"."+k, "a number")
			m[k] = before
			visit(path+"."+k, before)
		}
	}
	visit("", document)
	if !matches(document) || refused < 55 {
		t.Errorf("%d departures were tried", refused)
	}
}

// The type checker is what `opa check --schema` runs.
func TestPolicyTypechecksAgainstTheSchema(t *testing.T) {
	check := policytest.Typechecks(t, node.InputSchema(), modules(t).WithoutTests(), "pipeguard.node")
	if err := check(""); err != nil {
		t.Fatal(err)
	}
	for _, misspelt := range []string{`input.namespace == "x"`, `input.peer.namespace == "x"`, `input.peer.user.group`, `input.peer.pid`, `input.params.path`} {
		if check(misspelt) == nil {
			t.Errorf("%s passes", misspelt)
		}
	}
	if err := check(`input.request.anything == 1`); err != nil {
		t.Errorf("the request is free: %v", err)
	}
}
