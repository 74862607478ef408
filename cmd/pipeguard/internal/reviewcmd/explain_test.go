package reviewcmd

import (
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/test/clitest"
)

// object is a file of testdata as JSON.
func object(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/review/" + file)
	if err != nil {
		t.Fatal(err)
	}
	out, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestExplainNamesPolicyAndSubject(t *testing.T) {
	f := clusterOf(t, "testdata/review/policies.yaml")
	f.objects = map[string]string{
		"kube-system/pods/driver": object(t, "driver.yaml"),
		"of-context/pods/web":     object(t, "web-with-pipe.yaml"),
		"of-context/pods/plain":   object(t, "ordinary.yaml"),
		"of-context/pods/host":    object(t, "host-process.yaml"),
	}
	for name, c := range map[string]struct {
		args []string
		code int
	}{
		"driver": {[]string{"pod/driver", "-n", "kube-system"}, cli.ExitYes},
		"web":    {[]string{"po", "web"}, cli.ExitNo},
		"plain":  {[]string{"Pods/plain"}, cli.ExitYes},
		"host":   {[]string{"pod/host"}, cli.ExitYes},
	} {
		for _, format := range []string{"text", "json"} {
			got := f.execute(t, append([]string{"explain", "-o", format}, c.args...)...)
			if got.Code != c.code || got.ErrOut != "" {
				t.Errorf("%s: exit code %d, standard error %q", name, got.Code, got.ErrOut)
			}
			clitest.Golden(t, "explain-"+name+"."+strings.Replace(format, "text", "txt", 1), got.Out)
		}
	}
}

func TestExplainSaysWhatItCannotAnswer(t *testing.T) {
	f := clusterOf(t)
	f.objects = map[string]string{"of-context/pods/odd": `{"apiVersion":"v1","kind":"Secret"}`, "of-context/pods/plain": object(t, "ordinary.yaml")}
	for want, args := range map[string][]string{
		`kind "secret" is not one that the webhook judges`: {"secret/x"},
		`"pod" is no object: want KIND/NAME`:               {"pod"},
		`"pod/a/b" is no object`:                           {"pod/a/b"},
		`"pod .." is no object`:                            {"pod", ".."},
		"name one object":                                  {"pod/a", "b"},
		`pods "x\x1b" not found`:                           {"pod/x\x1b"},
		"Secret":                                           {"pod/odd"},
	} {
		got := f.execute(t, append([]string{"explain"}, args...)...)
		if got.Code != cli.ExitBadInput || !strings.Contains(got.ErrOut, want) {
			t.Errorf("%q: exit code %d, standard error %q", args, got.Code, got.ErrOut)
		}
	}
	f.revisions = []string{"sha256:0"}
	if got := f.execute(t, "explain", "pod/plain"); got.Code != cli.ExitBadInput || !strings.Contains(got.ErrOut, "sha256:0") {
		t.Errorf("exit code %d, standard error %q", got.Code, got.ErrOut)
	}
}
