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

func TestAValueOfAnotherSyntaxThanItsFieldIsRefused(t *testing.T) {
	for key, values := range map[string][]string{
		"namespace": {" x", "x ", "=x", "a/b", "a.b", "-a", strings.Repeat("a", 64)}, "pod": {" x", "a/b/c", "a b"}, "sa": {"a:b", "system:serviceaccount:a:b"}, "pid": {"0", "-1", "x", "07"},
		"seq": {"0", "-0", "0-0"}, "version": {"1", "beta1"}, "pipe": {" disk-v1", `a\b`, `\\.\pipe\`}, "code": {"17", "99", "600", "Code()", "-1"}, "result": {"17"},
		"path": {"relative", `C:relative`, `..\x`, "*", `C:\a\*`, `a:b`, " C:\\a"}, "id": {"a b"}, "conn": {" "}, "node": {"a\tb"}, "image": {"a b"}, "container": {"a b"}, "token": {"frob nicate"},
	} {
		for _, value := range values {
			var syntax *SyntaxError
			if err := new(Filter).Want(key, value, noon); !errors.As(err, &syntax) {
				t.Errorf("%s %q: %v", key, value, err)
			}
			if err := new(Filter).Exclude(key, value); !errors.As(err, &syntax) {
				t.Errorf("without %s %q: %v", key, value, err)
			}
		}
	}
}

func TestEverySpellingOfAValueFitsTheRecord(t *testing.T) {
	e := audit.Event{
		Seq: 1, ID: "EJTKWYK2GE2O4SSCLOAUXOHGCS", Type: audit.TypeRequest, Stage: audit.StageResponseComplete,
		Who:     &audit.Who{Pod: &audit.WhoPod{Namespace: "a-1", Name: "b.c", UID: "0b7e6a52-7c1d-4a59-9d62-3f6f6f0f7e10", ServiceAccount: "d"}, Process: &audit.WhoProcess{PID: 10}},
		What:    &audit.What{Pipe: "csi-proxy-disk-v1", Version: "v1beta2", Targets: []audit.Target{{Kind: "path", Value: `C:\x`}}},
		Outcome: &audit.Outcome{Result: audit.ResultRejected, Code: "PermissionDenied"},
	}
	for key, values := range map[string][]string{
		"namespace": {"a-1", "A-1", "a*", "*"}, "pod": {"b.c", "a-1/b.c", "0b7e6a52-7c1d-4a59-9d62-3f6f6f0f7e10", "*/b.c"}, "sa": {"d", "a-1/d"}, "pid": {"10", "1*"}, "version": {"v1beta2", "V1*", "*2"},
		"pipe": {"disk-v1", "csi-proxy-disk-v1", `\\.\pipe\csi-proxy-disk-v1`, "//./PIPE/csi-proxy-disk-v1", `\\?\pipe\disk-v1`, "*disk*"}, "code": {"7", "PermissionDenied", "permission*"}, "result": {"7", "rejected"},
		"path": {`C:\`, "c:", "c:/x", `\\?\C:\x`}, "seq": {"1", "0-1"},
	} {
		for _, value := range values {
			var f Filter
			if err := f.Want(key, value, noon); err != nil || !f.Match(&e) {
				t.Errorf("%s %q does not fit: %v", key, value, err)
			}
		}
	}
	status := audit.Event{Outcome: &audit.Outcome{Result: audit.ResultRejected, Code: "403"}}
	other := audit.Event{Outcome: &audit.Outcome{Result: audit.ResultError, Code: "Code(99)"}}
	for value, want := range map[string]*audit.Event{"403": &status, "4*": &status, "Code(99)": &other, "code(99)": &other} {
		var f Filter
		if err := f.Want("code", value, noon); err != nil || !f.Match(want) || f.Match(&e) {
			t.Errorf("code %q: %v", value, err)
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
		"decision=denied": {true, false}, "decision=DENY": {true, false}, "decision=den*": {true, false}, "decision=none": {false, true}, "decision=-": {false, true}, "decision=": {false, true}, "decision!=-": {true, false}, "decision!=allowed": {true, true},
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
