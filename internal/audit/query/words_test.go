package query

import (
	"errors"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/audit"
)

func TestAValueThatNoRecordCanHaveIsRefusedWithThoseThatCan(t *testing.T) {
	for term, want := range map[string]string{
		"decision=forbidden": "allow, deny, logonly or none", "stage=ende": "close, closed, end", "result=okay": "ok, error, denied", "type=requests": "request, connection, admission or log",
		"host=maybe": "yes or no", "effect=deni": "allow or deny", "mode=Audit": "Enforce or LogOnly", "assurance=high": "pod, process", "verb=delete-all": "read, write",
		"code=Forbidden": "PermissionDenied", "token=maybe": "stale, unbound or the id of a token", "decision=x*": "allow, deny", "decision!=forbidden": "allow, deny",
	} {
		var syntax *SyntaxError
		if err := new(Filter).Parse(term, noon); !errors.As(err, &syntax) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, and not the words %q", term, err, want)
		}
	}
}

func TestTheWordsOfTheColumnsAreTaken(t *testing.T) {
	denied := audit.Event{
		Type: audit.TypeRequest, Stage: audit.StageResponseComplete, Decision: &audit.Decision{Effect: audit.EffectDeny, Mode: "Enforce"},
		Outcome: &audit.Outcome{Result: audit.ResultDenied, Code: "PermissionDenied"}, Who: &audit.Who{Assurance: "pod"},
	}
	broken := audit.Event{Type: audit.TypeRequest, Stage: audit.StageResponseComplete, Outcome: &audit.Outcome{Result: audit.ResultRejected, Code: "Unimplemented"}}
	for term, want := range map[string][2]bool{
		"decision=denied": {true, false}, "decision=DENY": {true, false}, "decision=den*": {true, false}, "decision=none": {false, true}, "decision!=allowed": {true, true},
		"stage=end": {true, true}, "stage=ResponseComplete": {true, true}, "stage=Response*": {true, true}, "stage=intent": {false, false},
		"result=denied": {true, false}, "result=Unimplemented": {false, true}, "result=rejected": {false, true}, "effect=-": {false, true}, "effect=": {false, true},
		"host=no": {true, false}, "host=false": {true, false}, "code=PermissionDenied": {true, false}, "code=403": {false, false},
	} {
		var f Filter
		if err := f.Parse(term, noon); err != nil {
			t.Errorf("%s: %v", term, err)
			continue
		}
		if got := [2]bool{f.Match(&denied), f.Match(&broken)}; got != want {
			t.Errorf("%s fits the denial and the broken call: %v, want %v", term, got, want)
		}
	}
}

// A word that is missing here would be refused although records have it.
func TestEveryStageHasItsWord(t *testing.T) {
	for stage := range stages {
		for _, value := range []string{string(stage), stages[stage]} {
			var f Filter
			if err := f.Want("stage", value, noon); err != nil || !f.Match(&audit.Event{Stage: stage}) {
				t.Errorf("%s is not found as %q: %v", stage, value, err)
			}
		}
	}
}
