package policies_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/policy"
)

// A test that cannot fail protects nothing: each of these changes makes the policy weaker or wrong, and the tests in Rego must
// notice it.
func TestTheTestsNoticeAWeakerPolicy(t *testing.T) {
	for _, c := range []struct{ file, old, with string }{
		{"decision.rego", `{"warn", "audit"}`, `{"warn", "audit", ""}`},
		{"decision.rego", `finding.effect in {"warn", "audit"}`, `finding.effect != "deny"`},
		{"decision.rego", `default field_of(_) := ""`, ``},
		{"decision.rego", ` if is_string(entry.field)`, ``},
		{"input.rego", `input.schema == "pipeguard.dev/admission/v1"`, `startswith(input.schema, "pipeguard.dev/admission/v1")`},
		{"input.rego", "\tis_string(input.namespace)\n", ""},
		{"input.rego", "\tis_string(input.serviceAccount)\n", ""},
		{"input.rego", "\tis_object(input.annotations)\n", ""},
		{"input.rego", "\tis_array(input.containers)\n", ""},
		{"input.rego", "\tis_array(input.mounts)\n", ""},
		{"input.rego", "\tis_array(input.unmounted)\n", ""},
		{"requirement.rego", `parameters.requirement in {"PrivilegedOrAllowedNamespace", "AllowedNamespace"}`, `parameters.requirement`},
		{"requirement.rego", "\tparameters.requirement in {\n\t\t\"PrivilegedOrAllowedNamespace\",\n\t\t\"PrivilegedAndAllowedNamespace\",\n\t\t\"AllowedNamespace\",\n\t}\n", "\tparameters.requirement\n"},
		{"requirement.rego", "\thost_process_effects[parameters.hostProcess]\n", ""},
		{"requirement.rego", "\tallowed_namespaces_valid\n", ""},
		{"requirement.rego", "\tparameters.requirement == \"PrivilegedAndAllowedNamespace\"\n\tnamespace_allowed\n", "\tparameters.requirement == \"PrivilegedAndAllowedNamespace\"\n"},
		{"requirement.rego", "\tinput.namespace != \"\"\n", ""},
		{"requirement.rego", "\tinput.serviceAccount != \"\"\n", ""},
		{"requirement.rego", "\tis_array(entry.serviceAccounts)\n", ""},
		{"requirement.rego", "\tobject.keys(entry) == {\"serviceAccounts\"}\n", ""},
		{"requirement.rego", "\tinput.serviceAccount in entry.serviceAccounts\n", ""},
		{"requirement.rego", "service_account_allowed(entry) if is_null(entry)", "service_account_allowed(entry) if not entry.serviceAccounts"},
		{"mount.rego", "not mount.guarded == false", "mount.guarded == true"},
		{"mount.rego", "not mount.guarded == false", "mount.guarded"},
		{"mount.rego", "mount.privileged == true", "mount.privileged"},
		{"mount.rego", "mount.privileged == true", "not mount.privileged == false"},
		{"mount.rego", "\tprivilege_suffices\n", ""},
		{"mount.rego", "not namespace_suffices", "not namespace_allowed"},
		{"mount.rego", `"effect": "deny"`, `"effect": "warn"`},
		{"mount.rego", "field_of(mount)", "mount.field"},
		{"unmounted.rego", "not volume.guarded == false", "volume.guarded == true"},
		{"unmounted.rego", "\tparameters_valid\n", ""},
		{"unmounted.rego", "\tnamespace_allowed\n", ""},
		{"unmounted.rego", `"effect": "deny"`, `"effect": "audit"`},
		{"no_single_pipe.rego", "[input.mounts, input.unmounted]", "[input.mounts]"},
		{"no_single_pipe.rego", "[input.mounts, input.unmounted]", "[input.unmounted]"},
		{"no_single_pipe.rego", "not entry.neverAllowed == false", "entry.neverAllowed == true"},
		{"no_single_pipe.rego", "\tsome list in", "\tnot namespace_suffices\n\tsome list in"},
		{"privileged_alone.rego", "\tnot namespace_allowed\n", ""},
		{"privileged_alone.rego", "[container.type, container.name] in", "some [_, container.name] in"},
		{"privileged_alone.rego", "[container.type, container.name] in", "some [container.type, _] in"},
		{"privileged_alone.rego", "not mount.guarded == false", "mount.guarded == true"},
		{"privileged_alone.rego", "\tprivilege_permits(mount)\n", ""},
		{"host_process.rego", `default host_process_effect := "deny"`, `default host_process_effect := "audit"`},
		{"host_process.rego", "not container.hostProcess == false", "container.hostProcess == true"},
		{"host_process.rego", `"Deny": "deny"`, `"Deny": "warn"`},
		{"host_process.rego", `"Warn": "warn"`, `"Warn": "audit"`},
		{"host_process_annotation.rego", "lower(key)", "key"},
		{"host_process_annotation.rego", "microsoft.com/hostprocess\"", "microsoft.com/hostprocess-container\""},
		{"host_process_annotation.rego", "microsoft.com/hostprocess\"", "microsoft.com/\""},
		{"host_process_annotation.rego", "some key, _ in input.annotations", "some key, \"true\" in input.annotations"},
	} {
		t.Run(c.file+": "+c.old, func(t *testing.T) {
			t.Parallel()
			m := modules(t)
			changed := strings.Replace(m.Files[c.file], c.old, c.with, 1)
			if changed == m.Files[c.file] {
				t.Fatalf("%s does not contain %q", c.file, c.old)
			}
			m.Files[c.file] = changed
			own := strings.TrimSuffix(c.file, ".rego") + "_test.rego"
			if noticed, err := isNoticed(t, onlyTests(m, own, "fixtures_test.rego")); err == nil && noticed {
				return // by all tests as well, which take many times as long to compile
			}
			switch noticed, err := isNoticed(t, m); {
			case err != nil:
				t.Errorf("%q became %q, which does not compile and so proves nothing: %v", c.old, c.with, err)
			case !noticed:
				t.Errorf("%q became %q, and no test noticed", c.old, c.with)
			}
		})
	}
}

// isNoticed says whether a test fails.
func isNoticed(t *testing.T, m policy.Modules) (bool, error) {
	t.Helper()
	results, err := policy.Test(t.Context(), m, patient)
	return slices.ContainsFunc(results, func(r policy.TestResult) bool { return !r.Passed }), err
}

// onlyTests leaves out all files of tests but those named.
func onlyTests(m policy.Modules, names ...string) policy.Modules {
	files := maps.Clone(m.Files)
	maps.DeleteFunc(files, func(name, _ string) bool {
		return strings.HasSuffix(name, "_test.rego") && !slices.Contains(names, name)
	})
	return policy.Modules{Files: files, Data: m.Data}
}

// What may remain of a file's tests when the others are left out must pass on the policy as it is: else the test above would
// take any failure for a notice.
func TestTheTestsOfEachFilePassAlone(t *testing.T) {
	for name := range modules(t).Files {
		if !strings.HasSuffix(name, "_test.rego") || name == "fixtures_test.rego" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if noticed, err := isNoticed(t, onlyTests(modules(t), name, "fixtures_test.rego")); err != nil || noticed {
				t.Errorf("a test fails: %t, %v", noticed, err)
			}
		})
	}
}
