package node_test

import (
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/test/policytest"
)

// A test that cannot fail protects nothing: each of these changes makes the policy weaker or wrong, and the tests in Rego must
// notice it.
func TestTheTestsNoticeAWeakerPolicy(t *testing.T) {
	policytest.WithoutRaceDetector(t)
	for _, c := range []struct{ file, old, with string }{
		{"decision.rego", `{"warn", "audit"}`, `{"warn", "audit", ""}`},
		{"decision.rego", `finding.effect in {"warn", "audit"}`, `finding.effect != "deny"`},
		{"decision.rego", `finding.effect in {"warn", "audit"}`, `not finding.effect == "deny"`},
		{"decision.rego", "\tevery finding in findings {\n\t\tfinding", "\tsome finding in findings\n\t{x |\n\t\tx := finding\n\t\tfinding"},
		{"input.rego", "\tis_string(input.group)\n", ""},
		{"input.rego", "\tinput.group != \"\"\n", ""},
		{"input.rego", "\tis_string(input.operation)\n", ""},
		{"input.rego", "\tinput.operation != \"\"\n", ""},
		{"input.rego", "type_name(input.request) in {\"object\", \"null\"}", "type_name(input.request) in {\"object\", \"null\", \"array\"}"},
		{"input.rego", "type_name(input.request) in {\"object\", \"null\"}", "type_name(input.request)"},
		{"input.rego", "type_name(input.request) in {\"object\", \"null\"}", "type_name(input.request) in {\"object\"}"},
		{"input.rego", "\tis_object(input.peer)\n", "\tinput.peer\n"},
		{"input.rego", "\tis_object(input.peer)\n", ""},
		{"input.rego", "\tis_boolean(input.named)\n", ""},
		{"input.rego", "\tis_boolean(input.named)\n", "\tnot is_null(input.named)\n"},
		{"input.rego", "\tis_boolean(input.named)\n", "\tobject.get(input, \"named\", null) != null\n"},
		{"input.rego", "default is_named := false", "default is_named := true"},
		{"input.rego", "is_named if input.named == true", "is_named if input.named"},
		{"input.rego", "is_named if input.named == true", "is_named if not input.named == false"},
		{"input.rego", "is_named if input.named == true", "is_named if input.named in {true, \"true\"}"},
		{"input.rego", "is_named if input.named == true", "is_named if input.peer.assurance != \"none\""},
		{"input.rego", "is_named if input.named == true", ""},
		{"service_control.rego", `"effect": "deny"`, `"effect": "warn"`},
		{"service_control.rego", "\tnot is_named\n", ""},
		{"service_control.rego", "\tnot is_named\n", "\tnot is_named\n\tinput.peer.assurance == \"none\"\n"},
		{"service_control.rego", "\tnot is_named\n", "\tinput.named == false\n"},
		{"service_control.rego", "\tinput.group == \"system\"\n", ""},
		{"service_control.rego", "\tinput.operation in {\"StartService\", \"StopService\"}\n", ""},
		{"service_control.rego", `{"StartService", "StopService"}`, `{"StartService"}`},
		{"service_control.rego", `{"StartService", "StopService"}`, `{"StopService"}`},
		{"service_control.rego", `input.operation in`, `input.method in`},
		{"partition_disk.rego", `"effect": "deny"`, `"effect": "audit"`},
		{"partition_disk.rego", "\tnot is_named\n", ""},
		{"partition_disk.rego", "\tinput.group == \"disk\"\n", ""},
		{"partition_disk.rego", "\tinput.operation == \"PartitionDisk\"\n", ""},
		{"partition_disk.rego", "\tnot is_named\n", "\tnot is_named\n\tinput.request.disk_number > 0\n"},
		{"disk_offline.rego", `"effect": "deny"`, `"effect": "warn"`},
		{"disk_offline.rego", "\tnot is_named\n", ""},
		{"disk_offline.rego", "\tinput.group == \"disk\"\n", ""},
		{"disk_offline.rego", "\tinput.operation == \"SetDiskState\"\n", ""},
		{"disk_offline.rego", "not input.request.is_online == true", "input.request.is_online == false"},
		{"disk_offline.rego", "not input.request.is_online == true", "not input.request.is_online"},
		{"disk_offline.rego", "\tnot input.request.is_online == true\n", ""},
		{"format_volume.rego", `"effect": "deny"`, `"effect": "warn"`},
		{"format_volume.rego", "\tnot is_named\n", ""},
		{"format_volume.rego", "\tinput.group == \"volume\"\n", ""},
		{"format_volume.rego", "\tinput.operation == \"FormatVolume\"\n", ""},
		{"format_volume.rego", "\tnot is_named\n", "\tnot is_named\n\tinput.request.volume_id\n"},
	} {
		t.Run(c.file+": "+c.old, func(t *testing.T) {
			t.Parallel()
			m := modules(t)
			changed := strings.Replace(m.Files[c.file], c.old, c.with, 1)
			if changed == m.Files[c.file] {
				t.Fatalf("%s does not contain %q", c.file, c.old)
			}
			m.Files[c.file] = changed
			switch noticed, err := policytest.IsNoticed(t, m, patient); {
			case err != nil:
				t.Errorf("%q became %q, which does not compile and so proves nothing: %v", c.old, c.with, err)
			case !noticed:
				t.Errorf("%q became %q, and no test noticed", c.old, c.with)
			}
		})
	}
}
