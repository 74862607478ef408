package main

import (
	"testing"

	"github.com/pipeguard/pipeguard/internal/audit"
)

func TestRowsNamePermitsAndCallersThatLeft(t *testing.T) {
	d := &audit.Decision{Effect: audit.EffectAllow, Rule: "driver", Mode: "Enforce", Permits: []string{"Reformat", "SystemDisk"}}
	if got, want := decision(d, false), "allow: driver (permits Reformat, SystemDisk)"; got != want {
		t.Errorf("decision %q, want %q", got, want)
	}
	for _, tt := range []struct {
		o      audit.Outcome
		isWide bool
		want   string
	}{
		{audit.Outcome{Result: audit.ResultOK, Code: "OK", CallerLeft: true}, false, "ok (caller left)"},
		{audit.Outcome{Result: audit.ResultError, Code: "NotFound", CallerLeft: true}, false, "NotFound (caller left)"},
		{audit.Outcome{Result: audit.ResultError, Code: "NotFound", CallerLeft: true}, true, "error NotFound (caller left)"},
		{audit.Outcome{Result: audit.ResultOK, Code: "OK"}, false, "ok"},
	} {
		if got := outcome(&tt.o, tt.isWide); got != tt.want {
			t.Errorf("outcome %q, want %q", got, tt.want)
		}
	}
}
