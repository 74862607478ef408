package controller

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/admission"
)

func example() attempt {
	return attempt{base: base(), params: admission.DefaultParameters(), policyObjects: policyObjects{
		pipes:   []v1alpha1.PipePolicy{pipePolicy("p", 1), pipePolicy("q", 1)},
		modules: []v1alpha1.PolicyModule{policyModule("a", 1, goodRego)},
	}}
}

func TestTheHashIsOfEverythingThatDecides(t *testing.T) {
	seen := map[string]string{}
	for name, change := range map[string]func(*attempt){
		"nothing":               func(*attempt) {},
		"a file's text":         func(a *attempt) { a.base.Files["base.rego"] += "\n" },
		"a file's name":         func(a *attempt) { a.base.Files["x.rego"] = "" },
		"data":                  func(a *attempt) { a.base.Data = map[string]any{"x": 1} },
		"a parameter":           func(a *attempt) { a.params.GuardedPipes = []string{"x"} },
		"a pipe":                func(a *attempt) { a.pipes[0].Spec.Pipes[0] = "x" },
		"an action":             func(a *attempt) { a.pipes[0].Spec.Admission.Action = v1alpha1.ActionWarn },
		"an end":                func(a *attempt) { a.pipes[0].Spec.Subjects = []v1alpha1.Subject{ending("s", 0)} },
		"a later end":           func(a *attempt) { a.pipes[0].Spec.Subjects = []v1alpha1.Subject{ending("s", 1e9)} },
		"an object's name":      func(a *attempt) { a.pipes[0].Name = "o" },
		"an object less":        func(a *attempt) { a.pipes = a.pipes[:1] },
		"what is not known":     func(a *attempt) { a.pipes[0].Unknown = "spec.x" }, // with it the object is refused
		"not known of a module": func(a *attempt) { a.modules[0].Unknown = "spec.x" },
		"a module's text":       func(a *attempt) { a.modules[0].Spec.Modules[0].Rego += "\n" },
		"a module's name":       func(a *attempt) { a.modules[0].Name = "b" },
		"a parameter not data":  func(a *attempt) { a.params.EqualPowerPipes = []string{"x"} }, // it decides, and is in no revision
		"pipes of two policies": func(a *attempt) {
			a.pipes[0].Spec.Pipes, a.pipes[1].Spec.Pipes = []v1alpha1.PipePattern{"x"}, []v1alpha1.PipePattern{"y"}
		},
		"pipes of two policies, exchanged": func(a *attempt) {
			a.pipes[0].Spec.Pipes, a.pipes[1].Spec.Pipes = []v1alpha1.PipePattern{"y"}, []v1alpha1.PipePattern{"x"}
		},
	} {
		a := example()
		change(&a)
		hash, err := a.hash()
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := seen[hash]; ok {
			t.Errorf("%s has the hash of %s", name, other)
		}
		seen[hash] = name
	}
}

func TestTheHashIsNotOfWhatDecidesNothing(t *testing.T) {
	want, err := example().hash()
	if err != nil {
		t.Fatal(err)
	}
	a := example()
	a.pipes[0].Generation, a.pipes[0].UID = 7, types.UID("other")
	a.pipes[0].Labels = map[string]string{"x": "y"}
	a.pipes[0].Status.Revision = "sha256:0"
	a.modules[0].Status.Problems = []v1alpha1.Problem{{Code: "x"}}
	if got, err := a.hash(); err != nil || got != want {
		t.Errorf("hash %s, %v; want %s", got, err, want)
	}
}

func TestDataThatIsNoDataHasNoHash(t *testing.T) {
	a := example()
	a.base.Data = map[string]any{"f": func() {}}
	if hash, err := a.hash(); err == nil {
		t.Errorf("hash %s", hash)
	}
}
