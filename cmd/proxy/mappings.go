package main

import (
	"cmp"
	"context"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/proxy/handler"
)

// mappings shows the SMB mappings of the host as a metric. They leak when a driver does not remove them: Windows keeps them,
// with their credentials, for every process of the node, until its memory for them is used up.
type mappings struct {
	host handler.Mapper
	log  *zap.Logger

	mu     sync.Mutex
	counts map[[2]string]int // guarded by mu: by maker and use; nil before the host has answered
	asked  time.Time         // guarded by mu
	fault  bool              // guarded by mu: the host did not answer the last time
}

var (
	mappingsDesc = prometheus.NewDesc("pipeguard_smb_mappings",
		"SMB shares that are mapped for the whole node, by who asked for them and whether a link of a volume leads to them.", []string{"maker", "use"}, nil)
	mappingsFaultDesc = prometheus.NewDesc("pipeguard_smb_mappings_unknown", "1 if the host could not list its SMB mappings the last time.", nil, nil)
)

// Bounds of the metric. To list mappings asks WMI and looks through the working directories.
const (
	mappingsAge    = time.Minute      // how old an answer may be
	mappingsWithin = 10 * time.Second // how long the host may take
	maxMakers      = 32               // label values; more are "others"
)

// Describe implements [prometheus.Collector].
func (m *mappings) Describe(to chan<- *prometheus.Desc) {
	to <- mappingsDesc
	to <- mappingsFaultDesc
}

// Collect implements [prometheus.Collector].
func (m *mappings) Collect(to chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := time.Now(); m.asked.IsZero() || now.Sub(m.asked) >= mappingsAge {
		m.ask()
		m.asked = now
	}
	for labels, n := range m.counts {
		to <- prometheus.MustNewConstMetric(mappingsDesc, prometheus.GaugeValue, float64(n), labels[0], labels[1])
	}
	to <- prometheus.MustNewConstMetric(mappingsFaultDesc, prometheus.GaugeValue, isTrue(m.fault))
}

// ask keeps the last good answer. m.mu must be held.
func (m *mappings) ask() {
	ctx, cancel := context.WithTimeout(context.Background(), mappingsWithin)
	defer cancel()
	list, err := m.host.Mappings(ctx)
	if m.fault = err != nil; err != nil {
		m.log.Warn("the SMB mappings of the host cannot be listed", zap.Error(err), zap.Duration(logkeys.Duration, mappingsWithin))
		return
	}
	m.counts = countMappings(list)
}

// countMappings counts by maker and by "linked" or "unused". The makers of the most mappings have labels of their own.
func countMappings(list []handler.Mapping) map[[2]string]int {
	made := map[string]int{}
	for _, s := range list {
		made[maker(s)]++
	}
	makers := slices.SortedFunc(maps.Keys(made), func(a, b string) int { return cmp.Or(made[b]-made[a], strings.Compare(a, b)) })
	shown := map[string]bool{}
	for _, name := range makers[:min(len(makers), maxMakers)] {
		shown[name] = true
	}
	counts := map[[2]string]int{}
	for _, s := range list {
		name, use := maker(s), "linked"
		if !shown[name] {
			name = "others"
		}
		if s.Links == 0 {
			use = "unused"
		}
		counts[[2]string{name, use}]++
	}
	return counts
}

// maker is the caller that asked for a mapping, if this proxy made it since Windows started.
func maker(s handler.Mapping) string { return cmp.Or(s.By, "unknown") }

// mappingStatus is a mapping as status shows it.
type mappingStatus struct {
	Share     string     `json:"share"`
	Connected bool       `json:"connected"`
	Links     int        `json:"links"`
	Maker     string     `json:"maker"`
	Made      *time.Time `json:"made,omitempty"`
}

func describeMappings(list []handler.Mapping) []mappingStatus {
	var out []mappingStatus
	for _, s := range list {
		m := mappingStatus{Share: string(s.Share), Connected: s.Connected, Links: s.Links, Maker: maker(s)}
		if !s.At.IsZero() {
			m.Made = &s.At
		}
		out = append(out, m)
	}
	return out
}

// printMappings counts the mappings and names those that no volume's link leads to.
func printMappings(out io.Writer, list []mappingStatus) error {
	if len(list) == 0 {
		return nil
	}
	unused := slices.DeleteFunc(slices.Clone(list), func(m mappingStatus) bool { return m.Links > 0 })
	if err := printLine(out, "SMB mappings: %d, %d of them unused", len(list), len(unused)); err != nil {
		return err
	}
	for _, m := range unused {
		made := "at an unknown time"
		if m.Made != nil {
			made = m.Made.Format(time.RFC3339)
		}
		if err := printLine(out, "UNUSED MAPPING %q: made for %s, %s", m.Share, m.Maker, made); err != nil {
			return err
		}
	}
	return nil
}
