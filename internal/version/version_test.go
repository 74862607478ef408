package version_test

import (
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/pipeguard/pipeguard/internal/version"
)

// hack/image names archives and tags after the chart's appVersion, and the chart its images: these are of one release with the
// programs in them.
func TestProgramsAreOfTheChartsRelease(t *testing.T) {
	text, err := os.ReadFile("../../charts/pipeguard/Chart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var chart struct{ Version, AppVersion string }
	if err := yaml.Unmarshal(text, &chart); err != nil {
		t.Fatal(err)
	}
	if chart.AppVersion != version.Number() {
		t.Errorf("the chart is of %q, the programs are of %q", chart.AppVersion, version.Number())
	}
	if "v"+chart.Version != chart.AppVersion {
		t.Errorf("the chart has the version %q, and its programs %q", chart.Version, chart.AppVersion)
	}
	if said := version.String("webhook"); !strings.HasPrefix(said, "webhook "+chart.AppVersion+" (") {
		t.Errorf("--version says %q", said)
	}
}
