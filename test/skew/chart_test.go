//go:build !windows

package skew

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/test/integration/cluster"
)

// tools are the programs that test/tools builds. Without them nothing is tried.
func tools(t *testing.T, programs ...string) cluster.Tools {
	t.Helper()
	found, err := cluster.FindTools(programs...)
	if err != nil && os.Getenv("CI") != "true" {
		t.Skip("NOT TRIED: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// template renders a chart with files of values.
func template(t *testing.T, helm, chart string, values ...string) (said string, ok bool) {
	t.Helper()
	args := []string{"template", "pipeguard", chart, "--namespace", "pipeguard-system"}
	for _, file := range values {
		args = append(args, "--values", file)
	}
	stdout, stderr, code := release{programs: filepath.Dir(helm)}.run(t, filepath.Base(helm), args...)
	return stdout + stderr, code == 0
}

var notAllowed = regexp.MustCompile(`additional propert(?:y|ies) (.+) not allowed`)

func TestValuesOfEitherReleaseAreTakenOrRefusedByName(t *testing.T) {
	old, now := releases(t)
	helm := tools(t, "helm").Path("helm")
	oldChart, nowChart := old.file("charts", "pipeguard"), now.file("charts", "pipeguard")
	oldValues, nowValues := old.file("test", "chart", "testdata", "everything.yaml"), now.file("test", "chart", "testdata", "everything.yaml")
	if said, ok := template(t, helm, nowChart, oldValues); !ok {
		t.Errorf("values of the release before are refused: %s", said)
	}
	said, ok := template(t, helm, oldChart, nowValues)
	names := notAllowed.FindAllStringSubmatch(said, -1)
	if ok || len(names) == 0 {
		t.Errorf("the chart before takes values that it does not know, or names none: %s", said)
	}
	text := page(t)
	for _, found := range names {
		for _, name := range strings.Split(found[1], ", ") {
			listed(t, text, strings.Trim(name, `'"`))
		}
	}
}

// `helm upgrade --reuse-values` puts the values of the release before, defaults among them, in the place of the chart's own.
func TestReusedValuesAreRefusedByWhatTheyLack(t *testing.T) {
	old, now := releases(t)
	helm := tools(t, "helm").Path("helm")
	dir := filepath.Join(t.TempDir(), "pipeguard")
	if err := os.CopyFS(dir, os.DirFS(now.file("charts", "pipeguard"))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "values.yaml"), []byte(old.read(t, "charts", "pipeguard", "values.yaml")), 0o600); err != nil {
		t.Fatal(err)
	}
	if said, ok := template(t, helm, dir); ok || !strings.Contains(said, "missing propert") || !strings.Contains(said, "floor") {
		t.Errorf("reused values: %s", said)
	}
}
