package policies_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/test/policytest"
)

// A test that cannot fail protects nothing: each of these changes makes the policy weaker or wrong, and the tests in Rego must
// notice it.
func TestTheTestsNoticeAWeakerPolicy(t *testing.T) {
	policytest.WithoutRaceDetector(t)
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
		{"input.rego", "\tis_array(input.persistentVolumes)\n", ""},
		{"input.rego", "\tis_object(input.pod.annotations)\n", ""},
		{"input.rego", "\tis_string(input.pod.field)\n", ""},
		{"requirement.rego", `parameters.requirement in {"PrivilegedOrAllowedNamespace", "PrivilegedAndAllowedNamespace", "AllowedNamespace"}`, `parameters.requirement`},
		{"requirement.rego", "\tparameters.hostProcess in {\"Ignore\", \"Audit\", \"Warn\", \"Deny\"}\n", ""},
		{"requirement.rego", "\tparameters.equalPower in {\"Ignore\", \"Audit\", \"Warn\", \"Deny\"}\n", ""},
		{"requirement.rego", "\ttype_name(parameters.allowedNamespaces) in {\"object\", \"null\"}\n", ""},
		{"requirement.rego", `parameters.requirement != "PrivilegedAndAllowedNamespace"`, `parameters.requirement != "AllowedNamespace"`},
		{"requirement.rego", "\tparameters.requirement != \"PrivilegedAndAllowedNamespace\"\n", ""},
		{"requirement.rego", "\tnamespace_allowed\n\tparameters.requirement != ", "\tparameters.requirement != "},
		{"requirement.rego", "\tparameters.requirement != \"PrivilegedAndAllowedNamespace\"\n\tparameters_valid\n", "\tparameters.requirement != \"PrivilegedAndAllowedNamespace\"\n"},
		{"requirement.rego", "\tparameters.requirement == \"PrivilegedAndAllowedNamespace\"\n\tnamespace_allowed\n", "\tparameters.requirement == \"PrivilegedAndAllowedNamespace\"\n"},
		{"requirement.rego", "\tinput.namespace != \"\"\n", ""},
		{"requirement.rego", "\tinput.serviceAccount != \"\"\n", ""},
		{"requirement.rego", "\tis_array(entry.serviceAccounts)\n", "\tentry.serviceAccounts\n"},
		{"requirement.rego", "\tcount(entry) == 1\n", ""},
		{"requirement.rego", "\tinput.serviceAccount in entry.serviceAccounts\n", ""},
		{"requirement.rego", `entry in {null, {}, {"serviceAccounts": null}, {"serviceAccounts": []}}`, "not entry.serviceAccounts"},
		{"mount.rego", "not mount.guarded == false", "mount.guarded == true"},
		{"mount.rego", "not mount.guarded == false", "mount.guarded"},
		{"mount.rego", "mount.privileged == true", "mount.privileged"},
		{"mount.rego", "mount.privileged == true", "not mount.privileged == false"},
		{"mount.rego", "\tprivilege_suffices\n", ""},
		{"mount.rego", "not namespace_suffices", "not namespace_allowed"},
		{"mount.rego", "\tmount.policies == []", ""},
		{"mount.rego", `"effect": effect_of(mount)`, `"effect": "warn"`},
		{"mount.rego", `"effect": effect_of(mount)`, `"effect": "deny"`},
		{"mount.rego", "field_of(mount)", "mount.field"},
		{"unmounted.rego", "not volume.guarded == false", "volume.guarded == true"},
		{"unmounted.rego", "\tnot volume.guarded == false\n", ""},
		{"unmounted.rego", "\tvolume.neverAllowed == false", ""},
		{"unmounted.rego", "\tnot declaration_permitted(volume)\n", ""},
		{"unmounted.rego", "declaration_permitted(volume) if subjects_of(volume.policies, volume.access, true) != []", ""},
		{"unmounted.rego", "\tparameters_valid\n", ""},
		{"unmounted.rego", "\tnamespace_allowed\n", ""},
		{"unmounted.rego", "\tvolume.policies == []\n", "\tvolume.policies\n"},
		{"unmounted.rego", "subjects_of(volume.policies, volume.access, true) != []", "subjects_of(volume.policies, volume.access, true)"},
		{"unmounted.rego", "subjects_of(volume.policies, volume.access, true) != []", "count(volume.access.subjects) > 0"},
		{"unmounted.rego", "subjects_of(volume.policies, volume.access, true) != []", "subjects_of(volume.policies, volume.access, volume.privileged) != []"},
		{"unmounted.rego", "subjects_of(volume.policies, volume.access, true) != []", "subjects_of(volume.policies, volume.access, false) != []"},
		{"unmounted.rego", "if subjects_of(volume.policies, volume.access, true) != []", "if standing(volume.policies, volume.access, true) != \"none\""},
		{"unmounted.rego", `"effect": effect_of(volume)`, `"effect": "audit"`},
		{"unmounted.rego", `"effect": effect_of(volume)`, `"effect": "deny"`},
		{"no_single_pipe.rego", "[input.mounts, input.unmounted, ", "[input.mounts, "},
		{"no_single_pipe.rego", "[input.mounts, input.unmounted, ", "[input.unmounted, "},
		{"no_single_pipe.rego", ", input.persistentVolumes]", "]"},
		{"no_single_pipe.rego", "not entry.neverAllowed == false", "entry.neverAllowed == true"},
		{"no_single_pipe.rego", `default effect_of_lead(_) := "deny"`, `default effect_of_lead(_) := "audit"`},
		{"no_single_pipe.rego", "\tparameters_valid\n", ""},
		{"no_single_pipe.rego", "\tentry.neverAllowed == true\n", ""},
		{"no_single_pipe.rego", "\tis_string(entry.path)\n", ""},
		{"no_single_pipe.rego", "\tentry.path != `\\\\.\\pipe\\`\n", ""},
		{"no_single_pipe.rego", "parameters.strictestAction", "parameters.action"},
		{"pipe_policies.rego", "[parameters.action] if {\n\tparameters_valid\n", "[parameters.action] if {\n"},
		{"pipe_policies.rego", "\tentry.policies == []\n\tentry.guarded == true\n", "\tentry.guarded == true\n"},
		{"pipe_policies.rego", "\tentry.guarded == true\n", ""},
		{"no_single_pipe.rego", "\tsome list in", "\tnot namespace_suffices\n\tsome list in"},
		{"privileged_alone.rego", "\tnot namespace_allowed\n", ""},
		{"privileged_alone.rego", "[container.type, container.name] in", "some [_, container.name] in"},
		{"privileged_alone.rego", "[container.type, container.name] in", "some [container.type, _] in"},
		{"privileged_alone.rego", "not mount.guarded == false", "mount.guarded == true"},
		{"privileged_alone.rego", "\tnot mount.guarded == false\n", ""},
		{"privileged_alone.rego", "\tmount.neverAllowed == false\n", ""},
		{"privileged_alone.rego", "\tmount.privileged == true\n", ""},
		{"privileged_alone.rego", "\tstanding(mount.policies, mount.access, mount.privileged) == \"privileged\"\n", "\tfalse\n"},
		{"privileged_alone.rego", "\trests_on_privilege(mount)\n", ""},
		{"privileged_alone.rego", "\tmount.policies == []\n", "\tmount.policies\n"},
		{"privileged_alone.rego", "\tprivilege_alone_suffices\n", ""},
		{"privileged_alone.rego", `parameters.requirement == "PrivilegedOrAllowedNamespace"`, "parameters.requirement"},
		{"privileged_alone.rego", `standing(mount.policies, mount.access, mount.privileged) == "privileged"`, `standing(mount.policies, mount.access, mount.privileged) == "subject"`},
		{"host_process.rego", `default host_process_effect := "deny"`, `default host_process_effect := "audit"`},
		{"host_process.rego", "not container.hostProcess == false", "container.hostProcess == true"},
		{"host_process.rego", "\thost_subjects(container) == []\n", ""},
		{"requirement.rego", "\tparameters.hostPaths in {\"Ignore\", \"Audit\", \"Warn\", \"Deny\"}\n", ""},
		{"pipe_policies.rego", `"Warn": "warn", "Deny": "deny"}`, `"Warn": "audit", "Deny": "deny"}`},
		{"pipe_policies.rego", `"Warn": "warn", "Deny": "deny"}`, `"Warn": "warn", "Deny": "warn"}`},
		{"pipe_policies.rego", "] if parameters_valid\n", "]\n"},
		{"pipe_policies.rego", "\tis_array(entry.access.subjects)\n", ""},
		{"pipe_policies.rego", "\tis_string(subject.subject)\n", ""},
		{"pipe_policies.rego", "default host_subjects(_) := []\n", ""},
		{"pipe_policies.rego", "\tentry.policies == []\n", ""},
		{"pipe_policies.rego", "\tentry.equalPower in {\"\", \"directory\"}\n", ""},
		{"pipe_policies.rego", "\thost_subjects(entry) != []\n", ""},
		{"pipe_policies.rego", "[input.mounts, input.unmounted, ", "[input.mounts, "},
		{"pipe_policies.rego", "[input.mounts, input.unmounted, ", "[input.unmounted, "},
		{"pipe_policies.rego", ", input.persistentVolumes]", "]"},
		{"pipe_policies.rego", "\tentry.equalPower == \"\"\n", ""},
		{"pipe_policies.rego", "\tentry.place == \"\"\n", ""},
		{"pipe_policies.rego", "\tnot reaches_no_host(entry)\n", "\tsome _ in entry.place\n"},
		{"host_path.rego", "\tentry.equalPower == \"\"", ""},
		{"pipe_policies.rego", "\tentry.guarded == false", ""},
		{"pipe_policies.rego", "\tentry.neverAllowed == false\n", ""},
		{"host_path.rego", "\tentry.equalPower", "\tnot namespace_suffices\n\tentry.equalPower"},
		{"host_path.rego", "\tnot host_path_permitted(entry)\n", ""},
		{"host_path.rego", `default host_paths_effect := "deny"`, `default host_paths_effect := "audit"`},
		{"equal_power.rego", "\tnot host_path_permitted(entry)\n", ""},
		{"equal_power.rego", ` | {host_paths_effect | not entry.place == ""}`, ""},
		{"equal_power.rego", `not entry.place == ""`, `entry.place != ""`},
		{"equal_power.rego", `["deny", "warn", "audit", "none"]`, `["none", "audit", "warn", "deny"]`},
		{"equal_power.rego", `["deny", "warn", "audit", "none"]`, `["warn", "deny", "audit", "none"]`},
		{"permission_ends.rego", "\thost_path_permitted(mount)\n", ""},
		{"permission_ends.rego", "\thost_path_effect_of(mount) != \"none\"", ""},
		{"permission_ends.rego", "\tsubjects := host_subjects(entry)\n\tsubjects != []\n", "\tsubjects := host_subjects(entry)\n"},
		{"permission_ends.rego", "\tnot container.hostProcess == false\n", ""},
		{"permission_ends.rego", "\thost_process_effect != \"none\"", ""},
		{"host_process_annotation.rego", "lower(key)", "key"},
		{"host_process_annotation.rego", "microsoft.com/hostprocess\"", "microsoft.com/hostprocess-container\""},
		{"host_process_annotation.rego", "microsoft.com/hostprocess\"", "microsoft.com/\""},
		{"host_process_annotation.rego", "some key, _ in input.pod.annotations", "some key, \"true\" in input.pod.annotations"},
		{"host_process_annotation.rego", "some key, _ in input.pod.annotations", "some key, _ in input.annotations"},
		{"host_process_annotation.rego", "input.pod.field, ", `"metadata", `},
		{"pipe_policies.rego", "\tparameters_valid\n", ""},
		{"pipe_policies.rego", "\tnames_policies(policies)\n", "\tpolicies != [[]]\n"},
		{"pipe_policies.rego", "\tnames_policies(policies)\n", "\tpolicies\n"},
		{"pipe_policies.rego", "\teffects_of_actions[access.action]\n", "\tis_object(access)\n"},
		{"pipe_policies.rego", "\teffects_of_actions[access.action]\n", "\taccess.action\n"},
		{"pipe_policies.rego", "\tis_array(list)\n", ""},
		{"pipe_policies.rego", "\tis_string(sorted[0])\n", ""},
		{"pipe_policies.rego", "\tis_string(sorted[count(sorted) - 1])\n", ""},
		{"pipe_policies.rego", "\tsorted := sort(list)\n", "\tsorted := list\n"},
		{"pipe_policies.rego", `"Warn": "warn"`, `"Warn": "audit"`},
		{"pipe_policies.rego", `"Audit": "audit"}`, `"Audit": "warn"}`},
		{"pipe_policies.rego", `{"Deny": "deny"`, `{"Deny": "warn"`},
		{"pipe_policies.rego", `"Audit": "audit"}`, `"Audit": "audit", "": "audit"}`},
		{"pipe_policies.rego", "\tgoverned(policies, access)\n", "\tpolicies != access\n"},
		{"pipe_policies.rego", "\tis_array(access.subjects)\n", ""},
		{"pipe_policies.rego", "\tprivilege_fits(subject.requirement, privileged)\n", "\tis_boolean(privileged)\n"},
		{"pipe_policies.rego", "\tprivilege_fits(subject.requirement, privileged)\n", "\tis_boolean(privileged)\n\tsubject.requirement\n"},
		{"pipe_policies.rego", "\tprivilege_fits(subject.requirement, privileged)\n", "\tprivilege_fits(subject.requirement, is_boolean(privileged))\n"},
		{"pipe_policies.rego", "privilege_fits(requirement, _) if requirement in {\"AllowedNamespace\", \"PrivilegedOrAllowedNamespace\"}\n", ""},
		{"pipe_policies.rego", `in {"AllowedNamespace", "PrivilegedOrAllowedNamespace"}`, `in {"AllowedNamespace"}`},
		{"pipe_policies.rego", `in {"AllowedNamespace", "PrivilegedOrAllowedNamespace"}`, `!= "PrivilegedAndAllowedNamespace"`},
		{"pipe_policies.rego", `privilege_fits("PrivilegedAndAllowedNamespace", privileged) if privileged == true`, `privilege_fits("PrivilegedAndAllowedNamespace", privileged) if privileged`},
		{"pipe_policies.rego", `privilege_fits("PrivilegedAndAllowedNamespace", privileged) if privileged == true`, ""},
		{"pipe_policies.rego", "\tgoverned(policies, access)\n}\n\n# The grounds", "\tpolicies != access\n}\n\n# The grounds"},
		{"pipe_policies.rego", "\tprivileged == true\n", "\tprivileged != 7\n"},
		{"pipe_policies.rego", "\tprivileged == true\n", "\tprivileged\n"},
		{"pipe_policies.rego", "\taccess.privilegedSuffices == true\n", ""},
		{"pipe_policies.rego", "\taccess.privilegedSuffices == true\n", "\taccess.privilegedSuffices\n"},
		{"pipe_policies.rego", "\tsubjects_of(policies, access, privileged) != []\n", "\tsubjects_of(policies, access, privileged)\n"},
		{"pipe_policies.rego", "\tsubjects_of(policies, access, privileged) != []\n", "\tsubjects_of(policies, access, true) != []\n"},
		{"pipe_policies.rego", `standing(policies, access, privileged) := "subject"`, `standing(policies, access, privileged) := "privileged"`},
		{"pipe_policies.rego", `else := "privileged" if`, `else := "subject" if`},
		{"pipe_policies.rego", "\tprivilege_governs(policies, access, privileged)\n", "\tprivileged == true\n"},
		{"pipe_policies.rego", `default standing(_, _, _) := "none"`, `default standing(_, _, _) := "privileged"`},
		{"pipe_policies.rego", `default effect_of(_) := "deny"`, `default effect_of(_) := "warn"`},
		{"pipe_policies.rego", "[entry.access.action] if governed(entry.policies, entry.access)", "[entry.access.action]"},
		{"pipe_policies.rego", "[entry.access.action] if governed(entry.policies, entry.access)", "[entry.access.action] if parameters_valid"},
		{"governed.rego", "not mount.policies == []", "is_array(mount.policies)\n\tmount.policies != []"},
		{"governed.rego", "\tnot mount.policies == []", ""},
		{"governed.rego", "not mount.guarded == false", "mount.guarded == true"},
		{"governed.rego", "\tnot mount.guarded == false\n", ""},
		{"governed.rego", "\tmount.neverAllowed == false", ""},
		{"governed.rego", "\tnot governed_permits(mount)\n", ""},
		{"governed.rego", `in {"subject", "privileged"}`, `!= "privileged"`},
		{"governed.rego", `in {"subject", "privileged"}`, `== "subject"`},
		{"governed.rego", `in {"subject", "privileged"}`, `== "privileged"`},
		{"governed.rego", `"effect": effect_of(mount)`, `"effect": "deny"`},
		{"governed.rego", `"effect": effect_of(mount)`, `"effect": effects_of_actions[mount.access.action]`},
		{"persistent_volume.rego", "not volume.guarded == false", "volume.guarded == true"},
		{"persistent_volume.rego", "\tvolume.neverAllowed == false", ""},
		{"persistent_volume.rego", "\tnot volume.guarded", "\tnot namespace_suffices\n\tnot volume.guarded"},
		{"persistent_volume.rego", `"effect": effect_of(volume)`, `"effect": "deny"`},
		{"persistent_volume.rego", `"effect": effect_of(volume)`, `"effect": effects_of_actions[volume.access.action]`},
		{"equal_power.rego", `not entry.equalPower == ""`, `entry.equalPower != ""`},
		{"equal_power.rego", "\tnot entry.equalPower", "\tnot namespace_suffices\n\tnot entry.equalPower"},
		{"equal_power.rego", `default effect_of_power(_) := "deny"`, `default effect_of_power(_) := "audit"`},
		{"equal_power.rego", `entry.equalPower in {"pipe", "directory", "disk", "share"}`, "is_string(entry.equalPower)"},
		{"equal_power.rego", `"directory", "disk", "share"}`, `"directory", "disk"}`},
		{"equal_power.rego", `default equal_power_effect := "deny"`, `default equal_power_effect := "audit"`},
		{"permission_ends.rego", "\tnot mount.guarded == false\n", ""},
		{"permission_ends.rego", "not mount.guarded == false", "mount.guarded == true"},
		{"permission_ends.rego", "\tmount.neverAllowed == false\n", ""},
		{"permission_ends.rego", "\tsubjects != []\n", ""},
		{"permission_ends.rego", "subjects_of(mount.policies, mount.access, mount.privileged)", "subjects_of(mount.policies, mount.access, true)"},
		{"permission_ends.rego", "subjects_of(mount.policies, mount.access, mount.privileged)", "mount.access.subjects"},
		{"permission_ends.rego", "\tevery subject in subjects {\n\t\tnot lasts(subject)\n\t}\n", "\tsome subject in subjects\n\tnot lasts(subject)\n"},
		{"permission_ends.rego", "\t\tnot lasts(subject)\n", "\t\tsubject\n"},
		{"permission_ends.rego", "\tnot privilege_governs(mount.policies, mount.access, mount.privileged) #", "\t#"},
		{"permission_ends.rego", "\tnot privilege_governs(mount.policies, mount.access, mount.privileged) #", "\tnot mount.privileged == true #"},
		{"permission_ends.rego", "\tnot privilege_governs(mount.policies, mount.access, mount.privileged) #", "\tnot mount.access.privilegedSuffices == true #"},
		{"permission_ends.rego", "subject.endsSoon == false", "not subject.endsSoon"},
		{"permission_ends.rego", "subject.endsSoon == false", "subject.endsSoon != true"},
		{"permission_ends.rego", "subject.endsSoon == false", "subject"},
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
			if noticed, err := policytest.IsNoticed(t, onlyTests(m, own, "fixtures_test.rego"), patient); err == nil && noticed {
				return // by all tests as well, which take many times as long to compile
			}
			switch noticed, err := policytest.IsNoticed(t, m, patient); {
			case err != nil:
				t.Errorf("%q became %q, which does not compile and so proves nothing: %v", c.old, c.with, err)
			case !noticed:
				t.Errorf("%q became %q, and no test noticed", c.old, c.with)
			}
		})
	}
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
	policytest.WithoutRaceDetector(t)
	for name := range modules(t).Files {
		if !strings.HasSuffix(name, "_test.rego") || name == "fixtures_test.rego" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if noticed, err := policytest.IsNoticed(t, onlyTests(modules(t), name, "fixtures_test.rego"), patient); err != nil || noticed {
				t.Errorf("a test fails: %t, %v", noticed, err)
			}
		})
	}
}
