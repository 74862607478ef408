package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/proxy/handler"
)

// mapper is a host with mappings.
type mapper struct {
	list  []handler.Mapping
	err   error
	asked int
}

func (m *mapper) Mappings(context.Context) ([]handler.Mapping, error) {
	m.asked++
	return m.list, m.err
}

func TestLeakedMappingsAreCountedWithTheirMakers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := &mapper{list: []handler.Mapping{
			{Share: `\\a\1`, Links: 2, By: "kube-system/csi-smb-node-sa"},
			{Share: `\\a\2`, By: "kube-system/csi-smb-node-sa"},
			{Share: `\\a\3`, By: "kube-system/csi-smb-node-sa"},
			{Share: `\\b\4`},
		}}
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(&mappings{host: host, log: zap.NewNop()})
		compare := func(fault float64, want map[string]float64) {
			t.Helper()
			got := map[string]float64{}
			families, err := registry.Gather()
			if err != nil {
				t.Fatal(err)
			}
			for _, family := range families {
				for _, m := range family.GetMetric() {
					var labels []string
					for _, l := range m.GetLabel() {
						labels = append(labels, l.GetValue())
					}
					got[strings.Join(append([]string{family.GetName()}, labels...), " ")] = m.GetGauge().GetValue()
				}
			}
			all := maps.Clone(want)
			all["pipeguard_smb_mappings_unknown"] = fault
			if diff := cmp.Diff(all, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}
		counted := map[string]float64{
			"pipeguard_smb_mappings kube-system/csi-smb-node-sa linked": 1, "pipeguard_smb_mappings kube-system/csi-smb-node-sa unused": 2,
			"pipeguard_smb_mappings unknown unused": 1,
		}
		compare(0, counted)
		host.list, host.err = nil, errors.New("lost")
		compare(0, counted) // the host is not asked at every scrape
		if host.asked != 1 {
			t.Errorf("asked %d times", host.asked)
		}
		time.Sleep(mappingsAge)
		compare(1, counted) // the last good answer stays
		host.err = nil
		time.Sleep(mappingsAge)
		compare(0, map[string]float64{})
	})
}

func TestMakersOfMappingsAreFewLabels(t *testing.T) {
	var list []handler.Mapping
	for i := range 100 {
		list = append(list, handler.Mapping{By: fmt.Sprintf("n/%03d", i)})
	}
	list = append(list, handler.Mapping{By: "n/099"})
	counts := countMappings(list)
	if len(counts) != maxMakers+1 || counts[[2]string{"n/099", "unused"}] != 2 || counts[[2]string{"others", "unused"}] != 100-maxMakers {
		t.Errorf("%d labels: %v", len(counts), counts)
	}
}

func TestStatusNamesUnusedMappings(t *testing.T) {
	var text strings.Builder
	s := serviceStatus{Service: "csiproxy", Mappings: describeMappings([]handler.Mapping{
		{Share: `\\a\1`, Links: 2, By: "kube-system/csi-smb-node-sa"},
		{Share: `\\a\2`, By: "kube-system/csi-smb-node-sa", At: time.Date(2026, 3, 10, 10, 6, 2, 0, time.UTC)},
		{Share: "\\\\b\\\x1b[2J"},
	})}
	if err := s.print(&text, "table"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`service csiproxy is not installed
SMB mappings: 3, 2 of them unused
UNUSED MAPPING "\\\\a\\2": made for kube-system/csi-smb-node-sa, 2026-03-10T10:06:02Z
UNUSED MAPPING "\\\\b\\\x1b[2J": made for unknown, at an unknown time
`, text.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	text.Reset()
	if err := (serviceStatus{}).print(&text, "table"); err != nil || strings.Contains(text.String(), "SMB") {
		t.Errorf("without mappings: %s, %v", text.String(), err)
	}
}
