package query

import (
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/audit/evidence"
)

func TestOneReasonHidesNoOther(t *testing.T) {
	s := Reported(evidence.Report{HadKeys: true, OwnCovered: 5, LastSeq: 5, Incomplete: []string{"a", "b", "c"}}).Standing()
	changed := Reported(evidence.Report{HadKeys: true, Fault: &evidence.Fault{Problem: "x"}, Incomplete: []string{"a", "b"}}).Standing()
	if !changed.Changed || changed.Verified != 0 || !strings.HasPrefix(changed.Why, "the log was changed: ") || !strings.HasSuffix(changed.Why, "x; a; b") {
		t.Errorf("%+v", changed)
	}
	unheld := Reported(evidence.Report{HadKeys: true, Uncovered: "b", Incomplete: []string{"a", "b. More"}}).Standing()
	if unheld.Changed || unheld.Verified != 0 || unheld.Why != "a; b. More" {
		t.Errorf("%+v", unheld)
	}
	if s.Verified != 5 || !s.ByItself || s.Why != "a; b; c" {
		t.Errorf("%+v", s)
	}
}
