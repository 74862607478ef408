package chart_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/internal/policyset"
	"github.com/pipeguard/pipeguard/policies"
)

// samples returns everything of config/samples that is an object of the API.
func samples(t *testing.T) (pipes []v1alpha1.PipePolicy, modules []v1alpha1.PolicyModule) {
	t.Helper()
	files := read(t, filepath.Join(root, "config", "samples"), "p")
	listed := read(t, filepath.Join(root, "config", "samples"), "kustomization")["kustomization.yaml"]
	for name, text := range files {
		o := objects(t, text)[0]
		switch o.kind() {
		case "PipePolicy":
			pipes = append(pipes, decode[v1alpha1.PipePolicy](t, o))
		case "PolicyModule":
			modules = append(modules, decode[v1alpha1.PolicyModule](t, o))
		default: // a file for a program
			continue
		}
		if !strings.Contains(listed, "- "+name+"\n") {
			t.Errorf("kustomization.yaml does not list %s", name)
		}
	}
	return pipes, modules
}

func sources(t *testing.T) policyset.Sources {
	t.Helper()
	base, err := policy.LoadFS(policies.FS())
	if err != nil {
		t.Fatal(err)
	}
	s := policyset.Sources{Base: base, Parameters: admission.DefaultParameters()}
	s.PipePolicies, s.PolicyModules = samples(t)
	return s
}

// activate lets the sources decide in an engine of its own: they compile, and all tests and checks of what is added to the built-in policy pass.
func activate(t *testing.T, s policyset.Sources, change ...func(*policy.Modules)) error {
	t.Helper()
	modules, err := s.Assemble()
	if err != nil {
		return err
	}
	for _, c := range change {
		c(&modules)
	}
	engine, err := policy.New(policy.Options{TestTimeout: time.Minute, BaseTested: true})
	if err != nil {
		t.Fatal(err)
	}
	_, err = engine.Activate(t.Context(), modules)
	return err
}

func TestSamplesDecideTogetherAndTheirTestsPass(t *testing.T) {
	s := sources(t)
	if len(s.PipePolicies) != 2 || len(s.PolicyModules) != 1 {
		t.Fatalf("%d policies and %d modules", len(s.PipePolicies), len(s.PolicyModules))
	}
	if err := activate(t, s); err != nil {
		t.Error(err)
	}
}

// A test that cannot fail is no sample of one.
func TestTheSampleOfARuleIsHeldByItsTests(t *testing.T) {
	for name, change := range map[string][2]string{
		"":                              {`"effect": "deny"`, `"effect": "deny"`},
		"the rule warns":                {`"effect": "deny"`, `"effect": "warn"`},
		"the slash is not asked for":    {`endswith(registry, "/")`, `is_string(registry)`},
		"the end of the image counts":   {`startswith(mount.image, registry)`, `endswith(mount.image, registry)`},
		"any image will do":             {`startswith(mount.image, registry)`, `is_string(mount.image)`},
		"every mount is judged":         {"not mount.guarded == false\n", "true\n"},
		"no mount is judged":            {"not mount.guarded == false\n", "mount.guarded == false\n"},
		"every namespace is judged":     {"byNamespace[input.namespace]", "byNamespace.inventory"},
		"the registries are elsewhere":  {"byNamespace[", "byName["},
		"the rule says something other": {`{"code": "ACME001"`, `{"code": "ACME002"`},
	} {
		s := sources(t)
		rule := &s.PolicyModules[0].Spec.Modules[0]
		if n := strings.Count(rule.Rego, change[0]); n == 0 {
			t.Fatalf("%s: the rule has no %s", name, change[0])
		}
		rule.Rego = strings.ReplaceAll(rule.Rego, change[0], change[1])
		switch err := activate(t, s, func(m *policy.Modules) { m.Base = nil }); { // the sample's own tests must do
		case name == "" && err != nil:
			t.Errorf("without a change: %v", err)
		case name != "" && err == nil:
			t.Errorf("%s, and no test fails", name)
		}
	}
}

func TestTheSampleOfAnExceptionSaysWhoWhyAndUntilWhen(t *testing.T) {
	pipes, _ := samples(t)
	i := slices.IndexFunc(pipes, func(p v1alpha1.PipePolicy) bool { return p.Spec.Subjects[0].ExpiresAt != nil })
	if i < 0 {
		t.Fatal("no sample ends")
	}
	if s := pipes[i].Spec.Subjects[0]; s.Owner == "" || s.Reason == "" {
		t.Errorf("%+v", s)
	}
}

// The value of the chart and the object are two ways to say the same.
func TestTheSampleOfADriverIsWithinItsProfile(t *testing.T) {
	pipes, _ := samples(t)
	i := slices.IndexFunc(pipes, func(p v1alpha1.PipePolicy) bool { return p.Name == "azuredisk" })
	if i < 0 {
		t.Fatal("there is no azuredisk")
	}
	profile, subject := publishedIn(t, "drivers.yaml")["azuredisk"], pipes[i].Spec.Subjects[0]
	for _, pipe := range pipes[i].Spec.Pipes {
		if !slices.Contains(profile.Pipes, string(pipe)) {
			t.Errorf("the profile has no pipe %s", pipe)
		}
	}
	for _, method := range pipes[i].Spec.Node.Methods {
		if !slices.Contains(profile.Methods, method) {
			t.Errorf("the profile has no method %s", method)
		}
	}
	if subject.Namespace != profile.Namespace || !slices.Equal(subject.ServiceAccounts, profile.ServiceAccounts) || !slices.Equal(subject.Containers, []string{profile.Container}) {
		t.Errorf("%+v is not %+v", subject, profile)
	}
}
