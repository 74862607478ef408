package query

import (
	"testing"

	"github.com/pipeguard/pipeguard/internal/audit/evidence"
)

func TestOneReasonHidesNoOther(t *testing.T) {
	s := Reported(evidence.Report{HadKeys: true, OwnCovered: 5, LastSeq: 5, Incomplete: []string{"a", "b", "c"}}).Standing()
	if s.Verified != 5 || !s.ByItself || s.Why != "a; b; c" {
		t.Errorf("%+v", s)
	}
}
