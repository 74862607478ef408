package main

import (
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/audit/evidence"
)

func TestEachCopyHasItsVerdict(t *testing.T) {
	s := playOnce(t)
	keys, err := evidence.ReadKeys(s.keys())
	if err != nil {
		t.Fatal(err)
	}
	outside := []string{s.checkpoint()}
	for name, c := range map[string]struct {
		dir     string
		outside []string
		want    evidence.Verdict
		says    string // in the fault, or in what is incomplete
	}{
		"as it was":                                  {s.evidence(), outside, evidence.VerdictOK, ""},
		"as it was, with nothing from elsewhere":     {s.evidence(), nil, evidence.VerdictIncomplete, "no checkpoint that was held elsewhere"},
		"edited":                                     {s.edited(), outside, evidence.VerdictTampered, "record 59 was changed"},
		"edited, with nothing from elsewhere":        {s.edited(), nil, evidence.VerdictTampered, "record 59 was changed"},
		"rolled back":                                {s.rolledBack(), outside, evidence.VerdictTampered, "records at its end are gone"},
		"rolled back, and nothing from elsewhere":    {s.rolledBack(), nil, evidence.VerdictIncomplete, "records at its end may be missing"},
		"still on the node, with the witness's word": {s.log(), outside, evidence.VerdictOK, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := evidence.Verify(t.Context(), evidence.VerifyOptions{Dir: c.dir, Keys: keys, Outside: c.outside, RequireWitness: true})
			if err != nil {
				t.Fatal(err)
			}
			said := strings.Join(r.Incomplete, "; ")
			if r.Fault != nil {
				said = r.Fault.Error()
			}
			if r.Verdict != c.want || !strings.Contains(said, c.says) {
				t.Errorf("%s: %s, want %s: … %s …", r.Verdict, said, c.want, c.says)
			}
			if c.want == evidence.VerdictOK && (r.OutsideCovered != r.LastSeq || r.Witnessed != r.LastSeq || r.LastSeq < 100) {
				t.Errorf("covered up to record %d, witnessed up to %d, of %d", r.OutsideCovered, r.Witnessed, r.LastSeq)
			}
			if r.Fault != nil && (r.Fault.File == "" || r.Fault.Line == 0) {
				t.Errorf("no place: %+v", r.Fault)
			}
		})
	}
}

func TestOneRecordIsEditedAndNothingElse(t *testing.T) {
	s := playOnce(t)
	was, is := recordsOf(t, s.evidence()), recordsOf(t, s.edited())
	changed := 0
	for i := range was {
		if string(was[i].Raw) != string(is[i].Raw) {
			changed++
			if is[i].Who.Pod.Name != "orders-db-migrate-1" || is[i].Decision.Rule != "PN001" {
				t.Errorf("changed: %s", is[i].Raw)
			}
		}
	}
	if changed != 1 || len(was) != len(is) {
		t.Errorf("%d records of %d and %d are different", changed, len(was), len(is))
	}
}
