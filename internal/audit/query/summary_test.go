package query

import (
	"testing"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
)

func TestATallyCountsWhatASummaryStandsFor(t *testing.T) {
	tally, err := NewTally([]string{"method"})
	if err != nil {
		t.Fatal(err)
	}
	deny := &audit.Decision{Effect: audit.EffectDeny, Mode: "Enforce"}
	what := &audit.What{Method: "Rmdir"}
	tally.Add(&audit.Event{Type: audit.TypeRequest, Stage: audit.StageResponseComplete, Time: time.Unix(1, 0), What: what, Decision: deny, Outcome: &audit.Outcome{Result: audit.ResultDenied}})
	tally.Add(&audit.Event{Type: audit.TypeRequest, Stage: audit.StageSummary, Time: time.Unix(9, 0), What: what, Decision: deny, Outcome: &audit.Outcome{Result: audit.ResultDenied, Count: 41}})
	groups := tally.Groups()
	if len(groups) != 1 || groups[0].Records != 42 || groups[0].Denied != 42 {
		t.Errorf("%+v", groups[0])
	}
	var match Filter
	if err := match.Parse("stage=summary", time.Unix(9, 0)); err != nil {
		t.Fatal(err)
	}
	if !match.Match(&audit.Event{Stage: audit.StageSummary}) || match.Match(&audit.Event{Stage: audit.StageResponseComplete}) {
		t.Error("a summary is not found by its short name")
	}
}
