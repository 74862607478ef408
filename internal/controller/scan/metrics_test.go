package scan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMetricsTellWhatTheLastCompletePassFound(t *testing.T) {
	a := newAPIServer(t)
	a.pod("default", "a", "deny.PG001_deny.PG001_warn.PG004")
	a.pod("default", "b", "deny.PG042_audit.PG008")
	a.pod("default", "c", "fail")
	a.put(judgedKinds()[9], "", "pv", marked("deny.PG007"))
	s, _ := newScanner(t, a)
	complete(t, s)
	want := map[string]float64{
		"pipeguard_scan_findings code=PG001 effect=deny":  2,
		"pipeguard_scan_findings code=PG007 effect=deny":  1,
		"pipeguard_scan_findings code=other effect=deny":  1, // a code that no rule describes may be anything
		"pipeguard_scan_findings code=PG004 effect=warn":  1,
		"pipeguard_scan_findings code=PG008 effect=audit": 1,
		"pipeguard_scan_findings code=PG999 effect=error": 1,
		"pipeguard_scan_duration_seconds":                 1,
		"pipeguard_scan_errors_total":                     0,
		"pipeguard_scan_last_completed_timestamp_seconds": float64(clock.Unix()),
	}
	for _, k := range judgedKinds() {
		want["pipeguard_scan_objects kind="+k.gvk.Kind] = 0
	}
	want["pipeguard_scan_objects kind=Pod"] = 3
	want["pipeguard_scan_objects kind=PersistentVolume"] = 1
	if d := cmp.Diff(want, metricsOf(t, s)); d != "" {
		t.Errorf("metrics (-want +got):\n%s", d)
	}

	a.pod("default", "a", "")
	a.fault = answering("/deployments", 1, 403, "")
	incomplete(t, s)
	want["pipeguard_scan_duration_seconds"] = 2
	want["pipeguard_scan_errors_total"] = 1
	if d := cmp.Diff(want, metricsOf(t, s)); d != "" {
		t.Errorf("metrics after an incomplete pass (-want +got):\n%s", d)
	}

	complete(t, s)
	delete(want, "pipeguard_scan_findings code=PG001 effect=deny")
	delete(want, "pipeguard_scan_findings code=PG004 effect=warn")
	want["pipeguard_scan_duration_seconds"] = 3
	if d := cmp.Diff(want, metricsOf(t, s)); d != "" {
		t.Errorf("metrics after the findings went (-want +got):\n%s", d)
	}
}

func TestViolationsCountObjectsThatNobodyPermits(t *testing.T) {
	a := newAPIServer(t)
	a.namespace("other")
	a.pod("default", "a", "deny.PG010.disks_deny.PG010.disks-volumes")
	a.pod("other", "b", "deny.PG010.disks")
	a.pod("other", "c", "warn.PG010.disks_audit.PG010.disks")
	a.put(judgedKinds()[9], "", "pv", marked("deny.PG007.volumes"))
	s, p := newScanner(t, a)
	if n, ok := s.Violations("disks"); n != 0 || ok {
		t.Errorf("before the first pass: %d, %v", n, ok)
	}
	a.fault = answering("/cronjobs", 1, 403, "")
	incomplete(t, s)
	if n, ok := s.Violations("disks"); n != 0 || ok {
		t.Errorf("after an incomplete pass: %d, %v", n, ok)
	}
	complete(t, s)
	for policy, want := range map[string]int32{"disks": 3, "volumes": 2, "nobody": 0} {
		if n, ok := s.Violations(policy); n != want || !ok {
			t.Errorf("%s: %d, %v; want %d", policy, n, ok, want)
		}
	}
	if modes, ok := s.OtherModes("disks"); !ok || len(modes) > 0 {
		t.Errorf("pods in another mode: %v, %v", modes, ok)
	}
	p.activate("sha256:2")
	if _, ok := s.OtherModes("disks"); ok {
		t.Error("after new policies, pods in another mode are known")
	}
	if n, ok := s.Violations("disks"); n != 0 || ok {
		t.Errorf("after new policies: %d, %v; they have judged nothing yet", n, ok)
	}
}
