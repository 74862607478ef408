package hooks

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pipeguard/pipeguard/internal/entries"
)

// gathered are the samples of a registry as Prometheus reads them.
func gathered(t *testing.T, reg *prometheus.Registry) string {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			fmt.Fprintf(&out, "%s{%s} %v\n", f.GetName(), strings.Join(labels, ","), m.GetGauge().GetValue()+m.GetCounter().GetValue())
		}
	}
	return out.String()
}

func TestThePatchReplacesTheRulesOfSomePlacesInOneVersion(t *testing.T) {
	rules, _ := entries.RulesOf("persistentvolumes.pipeguard.dev")
	text, err := rulesPatch("42", map[int]entries.Rules{3: rules, 1: rules})
	if err != nil {
		t.Fatal(err)
	}
	const rule = `[{"operations":["CREATE","UPDATE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["persistentvolumes"],"scope":"Cluster"}]`
	want := `[{"op":"replace","path":"/metadata/resourceVersion","value":"42"},{"op":"add","path":"/webhooks/1/rules","value":` + rule +
		`},{"op":"add","path":"/webhooks/3/rules","value":` + rule + `}]`
	if got := string(text); got != want || !json.Valid(text) {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
