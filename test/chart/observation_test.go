package chart_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	metricAsked  = regexp.MustCompile(`\b((?:pipeguard|process|go)_[a-z_]*[a-z])\b`)
	metricMade   = regexp.MustCompile(`"(pipeguard_[a-z_]*[a-z])"`)
	ofHistograms = regexp.MustCompile(`_(bucket|sum|count)$`)
	notMetrics   = []string{"pipeguard_reports"}
)

// metrics returns the names of the webhook's metrics, as its source has them.
func metrics(t *testing.T) []string {
	t.Helper()
	names := []string{"process_resident_memory_bytes", "process_cpu_seconds_total"} // of the Prometheus client
	for _, dir := range []string{"cmd/webhook", "internal/admission", "internal/certs", "internal/controller", "internal/hooks"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, _ os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, m := range metricMade.FindAllStringSubmatch(string(text), -1) {
				names = append(names, m[1])
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(names) < 20 {
		t.Fatalf("only %d metrics were found in the source", len(names))
	}
	return names
}

func checkMetrics(t *testing.T, where, expression string, known []string) {
	t.Helper()
	asked := metricAsked.FindAllString(expression, -1)
	if len(asked) == 0 {
		t.Errorf("%s: %q asks for no metric", where, expression)
	}
	for _, name := range asked {
		if !slices.Contains(known, name) && !slices.Contains(known, ofHistograms.ReplaceAllString(name, "")) && !slices.Contains(notMetrics, name) {
			t.Errorf("%s: the webhook has no metric %s", where, name)
		}
	}
}

// panel is the part of a Grafana panel that is checked.
type panel struct {
	ID      int
	Type    string
	Title   string
	GridPos struct{ H, W, X, Y int }
	Targets []struct{ Expr string }
}

func TestTheDashboardShowsMetricsThatThereAre(t *testing.T) {
	var dashboard struct {
		UID, Title string
		Panels     []panel
	}
	text, _ := one(t, render(t, everything), "ConfigMap", "guard-dashboard").at("data", "pipeguard.json").(string)
	if err := json.Unmarshal([]byte(text), &dashboard); err != nil {
		t.Fatal(err)
	}
	known, ids, taken := metrics(t), map[int]bool{}, map[string]string{}
	for _, p := range dashboard.Panels {
		if ids[p.ID] || p.Title == "" {
			t.Errorf("panel %d %q: no title, or its number is another's", p.ID, p.Title)
		}
		ids[p.ID] = true
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				cell := fmt.Sprint(p.GridPos.X+x, p.GridPos.Y+y)
				if other, ok := taken[cell]; ok || p.GridPos.X+x >= 24 {
					t.Fatalf("%s lies upon %s, or outside", p.Title, other)
				}
				taken[cell] = p.Title
			}
		}
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("%s shows nothing", p.Title)
		}
		for _, target := range p.Targets {
			checkMetrics(t, p.Title, target.Expr, known)
		}
	}
	for _, name := range known {
		if strings.HasPrefix(name, "pipeguard_") && !strings.Contains(text, name) {
			t.Errorf("no panel shows %s", name)
		}
	}
}

func TestAlertsAskForMetricsThatThereAre(t *testing.T) {
	type rule struct {
		Alert, Expr, For    string
		Labels, Annotations map[string]string
	}
	type spec struct {
		Groups []struct {
			Name  string
			Rules []rule
		}
	}
	o := one(t, render(t, everything), "PrometheusRule", "guard-webhook")
	groups := decode[spec](t, o["spec"].(map[string]any)).Groups
	known, seen := metrics(t), map[string]bool{}
	for _, r := range groups[0].Rules {
		checkMetrics(t, r.Alert, r.Expr, known)
		if !strings.HasPrefix(r.Alert, "Pipeguard") || seen[r.Alert] {
			t.Errorf("%s is not a name, or another's", r.Alert)
		}
		seen[r.Alert] = true
		if !slices.Contains([]string{"critical", "warning", "info"}, r.Labels["severity"]) {
			t.Errorf("%s has the severity %q", r.Alert, r.Labels["severity"])
		}
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("%s does not say what it means", r.Alert)
		}
	}
	if len(seen) < 10 {
		t.Errorf("only %d alerts", len(seen))
	}
}

func TestPrometheusFindsTheMetrics(t *testing.T) {
	all := render(t, everything)
	monitor := one(t, all, "ServiceMonitor", "guard-webhook")
	service := one(t, all, "Service", "guard-webhook")
	selector, _ := monitor.at("spec", "selector", "matchLabels").(map[string]any)
	for key, value := range selector {
		if service.at("metadata", "labels", key) != value {
			t.Errorf("the Service lacks the label %s=%v", key, value)
		}
	}
	endpoint := object(monitor.at("spec", "endpoints").([]any)[0].(map[string]any))
	ports, _ := service.at("spec", "ports").([]any)
	if len(selector) == 0 || !slices.ContainsFunc(ports, func(p any) bool { return object(p.(map[string]any))["name"] == endpoint["port"] }) {
		t.Errorf("the Service has no port %v", endpoint["port"])
	}
	if monitor.at("metadata", "labels", "release") != "prometheus" {
		t.Error("labels of the value are missing")
	}
}
