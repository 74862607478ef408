package node_test

import (
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/policy/policytest"
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
		{"named.rego", "named[input.group][input.operation].pods", "named[input.group][_].pods"},
		{"named.rego", "named[input.group][input.operation].pods", "named[_][input.operation].pods"},
		{"named.rego", "[input.operation].pods", "[input.method].pods"},
		{"named.rego", "named[input.group][input.operation].hosts", "named[input.group][_].hosts"},
		{"named.rego", "named[input.group][input.operation].hosts", "named[_][input.operation].hosts"},
		{"named.rego", "[input.operation].hosts", "[input.method].hosts"},
		{"named.rego", "\tinput.peer.assurance == \"pod\"\n", ""},
		{"named.rego", "\tinput.peer.assurance == \"pod\"\n", "\tinput.peer.assurance != \"none\"\n"},
		{"named.rego", "\tpod.namespace != \"\"\n", ""},
		{"named.rego", "\tpod.serviceAccount != \"\"\n", ""},
		{"named.rego", "[pod.namespace][pod.serviceAccount]", "[pod.namespace][_]"},
		{"named.rego", "[pod.namespace][pod.serviceAccount]", "[_][pod.serviceAccount]"},
		{"named.rego", "serviceAccount != \"\"\n\tis_array(entries)\n", "serviceAccount != \"\"\n"},
		{
			"named.rego", `{"containers": containers, "services": services, "until": until} := object.union({"containers": "*", "services": "*", "until": "*"}, entry)`,
			"containers := object.get(entry, \"containers\", \"*\")\n\tservices := object.get(entry, \"services\", \"*\")\n\tuntil := object.get(entry, \"until\", \"*\")",
		},
		{"named.rego", "\tcontainer_fits(containers)\n", "\tcontainers == containers\n"},
		{"named.rego", "(containers)\n\tservice_fits(services)\n", "(containers)\n\tservices == services\n"},
		{"named.rego", "must be said.\nis_named if {\n\tinput.peer.assurance == \"pod\"\n", "must be said.\nis_named if {\n"},
		{"named.rego", `pods[pod.namespace]["*"]`, `pods[_]["*"]`},
		{"named.rego", "[\"*\"]\n\tpod.namespace != \"\"\n", "[\"*\"]\n"},
		{"named.rego", "\tis_array(containers)\n", ""},
		{"named.rego", "\tis_array(containers)\n\tcontainer_fits(containers)\n", "\tis_array(containers)\n"},
		{"named.rego", "\tis_array(containers)\n\tcontainer_fits(containers)\n\tservice_fits(services)\n", "\tis_array(containers)\n\tcontainer_fits(containers)\n\tservices == services\n"},
		{"named.rego", "\tis_array(containers)\n\tcontainer_fits(containers)\n\tservice_fits(services)\n\thas_not_ended(until)\n", "\tis_array(containers)\n\tcontainer_fits(containers)\n\tservice_fits(services)\n\tuntil == until\n"},
		{"named.rego", "\tinput.peer.assurance == \"process\"\n", ""},
		{"named.rego", "\tinput.peer.assurance == \"process\"\n", "\tinput.peer.assurance != \"none\"\n"},
		{"named.rego", "\tinput.peer.assurance == \"process\"\n", "\tinput.peer.assurance in {\"process\", \"pod\"}\n"},
		{"named.rego", "\tinput.peer.pod == null\n", ""},
		{"named.rego", "\tinput.peer.container == null\n", ""},
		{"named.rego", "\tinput.peer.user.sid != \"\"\n", ""},
		{"named.rego", "hosts[input.peer.user.sid]", "hosts[_]"},
		{"named.rego", "sid != \"\"\n\tis_array(entries)\n", "sid != \"\"\n"},
		{
			"named.rego", `{"programs": programs, "services": services} := object.union({"services": "*"}, entry)`,
			"programs := entry.programs\n\tservices := object.get(entry, \"services\", \"*\")",
		},
		{"named.rego", "\tprogram_fits(programs)\n", "\tprograms == programs\n"},
		{"named.rego", "(programs)\n\tservice_fits(services)\n", "(programs)\n\tservices == services\n"},
		{"named.rego", `union({"containers": "*", `, `union({"containers": [], `},
		{"named.rego", `union({"containers": "*", "services": "*", `, `union({"containers": "*", "services": [], `},
		{"named.rego", `"until": "*"}, entry)`, `"until": ""}, entry)`},
		{"named.rego", "\thas_not_ended(until)\n", "\tuntil == until\n"},
		{"named.rego", "has_not_ended(\"*\") := true", "has_not_ended(until) if until in {\"*\", null, false, \"\"}"},
		{"named.rego", "\tis_time(until)\n", ""},
		{"named.rego", "\tis_time(input.now)\n", ""},
		{"named.rego", "\tinput.now < until\n", ""},
		{"named.rego", "\tinput.now < until\n", "\tinput.now <= until\n"},
		{"named.rego", "[0-9]{2}Z$`", "[0-9]{2}Z`"},
		{"named.rego", "`^[0-9]{4}", "`[0-9]{4}"},
		{"named.rego", `union({"services": "*"}`, `union({"services": []}`},
		{"named.rego", `union({"services": "*"}`, `union({"services": "*", "programs": [input.peer.process.exe]}`},
		{"named.rego", "container_fits(\"*\") := true", "container_fits(list) if list in {\"*\", null, false}"},
		{"named.rego", "container_fits(\"*\") := true", "container_fits(list) if is_string(list)"},
		{"named.rego", "service_fits(\"*\") := true", "service_fits(list) if list in [\"*\", null, false, []]"},
		{"named.rego", "service_fits(\"*\") := true", "service_fits(list) if is_string(list)"},
		{"named.rego", "container_fits(list) if {\n\tis_array(list)\n", "container_fits(list) if {\n"},
		{"named.rego", "program_fits(list) if {\n\tis_array(list)\n", "program_fits(list) if {\n"},
		{"named.rego", "service_fits(list) if {\n\tis_array(list)\n", "service_fits(list) if {\n"},
		{"named.rego", "\tis_object(entry)\n", ""},
		{"named.rego", "\tinput.peer.container.name in list\n", ""},
		{"named.rego", "\tsame_name(program, input.peer.process.exe)\n", "\tprogram == program\n"},
		{"named.rego", "\tsame_name(program, input.peer.process.exe)\n", "\tprogram == input.peer.process.exe\n"},
		{"named.rego", "\tsame_name(program, input.peer.process.exe)\n", "\tstartswith(lower(input.peer.process.exe), lower(program))\n"},
		{"named.rego", "\tsame_name(program, input.peer.process.exe)\n", "\tendswith(lower(program), lower(input.peer.process.exe))\n"},
		{"named.rego", "\tsame_name(service, input.request.name)\n", "\tservice == service\n"},
		{"named.rego", "\tsame_name(service, input.request.name)\n", "\tservice == input.request.name\n"},
		{"named.rego", "\tis_string(a)\n", ""},
		{"named.rego", "\tis_string(b)\n", ""},
		{"named.rego", "\tlower(a) == lower(b)\n", "\tcontains(lower(b), lower(a))\n"},
		{"service_control.rego", `"effect": "deny"`, `"effect": "warn"`},
		{"service_control.rego", "\tnot is_named\n", ""},
		{"service_control.rego", "\tnot is_named\n", "\tnot is_named\n\tinput.peer.assurance == \"none\"\n"},
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
