package copies

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

func TestMetricsSayWhatBecameOfRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		stuck := &place{name: "stuck", send: func(context.Context, []Record) error { <-release; return nil }}
		bad := &place{name: "bad", send: func(context.Context, []Record) error { return errors.New("no") }}
		good := &place{name: "good"}
		c := mustNew(t, Options{Destinations: []Destination{stuck, bad, good}, Queue: 20_000})
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(Collector(c))
		for range 20 {
			c.Record(raw(1000))
			synctest.Wait()
		}
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				got[f.GetName()+" "+m.GetLabel()[0].GetName()+"="+m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
		want := map[string]float64{
			"pipeguard_audit_copies_dropped_total place=bad": 0, "pipeguard_audit_copies_dropped_total place=good": 0, "pipeguard_audit_copies_dropped_total place=stuck": 2,
			"pipeguard_audit_copies_failed_total place=bad": 20, "pipeguard_audit_copies_failed_total place=good": 0, "pipeguard_audit_copies_failed_total place=stuck": 0,
			"pipeguard_audit_copies_queued place=bad": 0, "pipeguard_audit_copies_queued place=good": 0, "pipeguard_audit_copies_queued place=stuck": 18,
			"pipeguard_audit_copies_sent_total place=bad": 0, "pipeguard_audit_copies_sent_total place=good": 20, "pipeguard_audit_copies_sent_total place=stuck": 0,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		close(release)
		mustClose(t, c)
	})
}
