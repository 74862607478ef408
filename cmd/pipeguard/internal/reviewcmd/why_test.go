package reviewcmd

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/test/clitest"
)

func TestWhySystemListsWhatHostProcessContainersReach(t *testing.T) {
	for name, args := range map[string][]string{
		"why-governed": {"--policies", "testdata/review/policies.yaml"},
		"why-log-only": {"--params", "testdata/review/why-parameters.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"review", "--why-system", "-f", "testdata/review/host-process.yaml", "-f", "testdata/review/driver.yaml"}, args...)
			text, asJSON := execute(t, "", args...), execute(t, "", append(args, "-o", "json")...)
			if text.Code != cli.ExitYes || asJSON.Code != cli.ExitYes {
				t.Errorf("exit codes %d and %d: %s%s", text.Code, asJSON.Code, text.ErrOut, asJSON.ErrOut)
			}
			clitest.Golden(t, name+".txt", text.Out)
			clitest.Golden(t, name+".json", asJSON.Out)
		})
	}
}

func whyOf(t *testing.T, stdin string, args ...string) (whyReport, result) {
	t.Helper()
	got := execute(t, stdin, append([]string{"review", "--why-system", "-o", "json"}, args...)...)
	var report whyReport
	if err := json.Unmarshal([]byte(got.Out), &report); err != nil {
		t.Fatalf("%v: %+v", err, got)
	}
	return report, got
}

// Which containers are HostProcess containers is for admission to say.
func TestWhySystemFindsTheContainersOfPG005(t *testing.T) {
	for _, file := range []string{"host-process.yaml", "driver.yaml", "workloads.yaml", "mixed.yaml", "ephemeral.json"} {
		var judged reviewReport
		if err := json.Unmarshal([]byte(execute(t, "", "review", "-o", "json", "-f", "testdata/review/"+file).Out), &judged); err != nil {
			t.Fatal(err)
		}
		var want, fields []string
		for _, o := range judged.Objects {
			for _, f := range o.Findings {
				if f.Code == "PG005" {
					want = append(want, o.Name+" "+f.Field)
				}
			}
		}
		report, _ := whyOf(t, "", "-f", "testdata/review/"+file)
		for _, o := range report.Objects {
			for _, c := range o.Containers {
				fields = append(fields, o.Name+" "+c.Field)
			}
		}
		slices.Sort(want)
		slices.Sort(fields)
		if !slices.Equal(want, fields) {
			t.Errorf("%s: %q, and PG005 finds %q", file, fields, want)
		}
	}
}

func TestWhySystemTakesAnUnknownAccountForSYSTEM(t *testing.T) {
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {hostNetwork: true, containers: [{name: c, image: i, securityContext: {windowsOptions: {hostProcess: true, runAsUserName: 'ACCOUNT'}}}]}\n"
	for account, isAdministrator := range map[string]bool{
		`NT AUTHORITY\SYSTEM`: true, `nt authority\system`: true, "Administrators": true, "hpc-users": true, `DOMAIN\user`: true, "LocalService": true,
		`NT AUTHORITY\LocalService`: false, `nt authority\LOCAL SERVICE`: false, `NT AUTHORITY\NetworkService`: false,
	} {
		report, got := whyOf(t, strings.Replace(pod, "ACCOUNT", account, 1), "-f", "-")
		if got.Code != cli.ExitYes || len(report.Objects) != 1 {
			t.Fatalf("%s: %+v", account, got)
		}
		if is := report.Objects[0].Reaches[0].Weight == "critical"; is != isAdministrator {
			t.Errorf("%s is taken for an administrator: %t", account, is)
		}
	}
}

func TestWhySystemSaysThatThereAreNoHostProcessContainers(t *testing.T) {
	files := []string{"-f", "testdata/review/driver.yaml", "-f", "testdata/review/workloads.yaml"}
	got := execute(t, "", append([]string{"review", "--why-system"}, files...)...)
	if got.Code != cli.ExitYes || got.Out != "no HostProcess containers, 0 faults\n" {
		t.Errorf("got %+v", got)
	}
	report, _ := whyOf(t, "", files...)
	if report.Objects == nil || len(report.Objects) != 0 {
		t.Errorf("objects %+v", report.Objects)
	}
}

func TestWhySystemNamesBadInput(t *testing.T) {
	for in, want := range map[string]string{
		"apiVersion: example.org/v1\nkind: Widget\n":                                          "kind Widget.example.org",
		"apiVersion: v1\nkind: Pod\nspec: {volumes: [{name: v, hostpath: {path: 'C:\\'}}]}\n": "the API server refuses this object",
	} {
		got := execute(t, in, "review", "--why-system", "-f", "-")
		if got.Code != cli.ExitBadInput || !strings.Contains(got.Out, "bad input: ") || !strings.Contains(got.Out, want) {
			t.Errorf("got %+v, want %q", got, want)
		}
	}
}

func TestWhySystemShowsTextsInert(t *testing.T) {
	const evil = `\u001b[2J\u202e\u0007`
	in := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a` + evil + `","annotations":{"microsoft.com/` + evil + `":"x"}},"spec":{"serviceAccountName":"` + evil + `","hostNetwork":true,
"containers":[{"name":"` + evil + `","image":"` + evil + `","securityContext":{"windowsOptions":{"hostProcess":true,"runAsUserName":"` + evil + `"}},"volumeMounts":[{"name":"` + evil + `","mountPath":"x"}]}, {"name":"b"}],
"volumes":[{"name":"` + evil + `","hostPath":{"path":"C:\\` + evil + `"}}]}}`
	for _, format := range []string{"text", "json"} {
		got := execute(t, in, "review", "--why-system", "-f", "-", "-o", format)
		if got.Code != cli.ExitYes || strings.ContainsAny(got.Out, "\x1b\x07\u202e") || strings.Count(got.Out, "[2J") < 4 {
			t.Errorf("exit code %d, output %q", got.Code, got.Out)
		}
	}
}
