package query

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// places say where in the JSON of a record the values of a field stand, written down again for the test.
var places = map[string]string{
	"type": "type", "stage": "stage", "session": "session", "id": "id", "assurance": "who.assurance", "namespace": "who.pod.ns",
	"pod": "who.pod.name", "sa": "who.pod.sa", "container": "who.container.name who.container.id", "image": "who.container.image",
	"user": "who.user.sid who.user.name", "program": "who.process.exe", "pipe": "what.pipe", "group": "what.group", "version": "what.version",
	"method": "what.method what.full_method", "verb": "what.verb", "target": "what.targets.value what.targets.canonical",
	"effect": "decision.effect", "mode": "decision.mode", "rule": "decision.rule", "reason": "decision.reason", "policy": "decision.policy.name",
	"revision": "decision.policy.rev decision.policy.bundle", "result": "outcome.result", "code": "outcome.code", "error": "outcome.error",
	"conn": "corr.conn", "node": "where.node",
}

func valuesAt(v any, path []string) (found []string) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			found = append(found, valuesAt(item, path)...)
		}
	case map[string]any:
		if len(path) > 0 {
			return valuesAt(v[path[0]], path[1:])
		}
	case nil:
	default:
		if len(path) == 0 {
			found = append(found, fmt.Sprint(v))
		}
	}
	return found
}

// naive is the search that needs no thought: every value of the JSON, and a regular expression for each pattern.
func naive(doc map[string]any, key, value string) bool {
	pattern := regexp.MustCompile("(?is)^" + strings.ReplaceAll(regexp.QuoteMeta(value), `\*`, ".*") + "$")
	isEmpty := true
	for _, place := range strings.Fields(places[key]) {
		for _, v := range valuesAt(doc, strings.Split(place, ".")) {
			isEmpty = isEmpty && v == ""
			if value != "" && pattern.MatchString(v) {
				return true
			}
		}
	}
	return value == "" && isEmpty
}

// words are few, so that terms fit often.
var words = []string{"", "a", "b", "ab", "A", `C:\a`, "x*"}

func word1(r *rand.Rand) string { return words[r.IntN(len(words))] }

// formed is a word that a field can have by its syntax.
func formed(r *rand.Rand, key string) string {
	for {
		if word := word1(r); word == "" || hasForm(key, word) == nil {
			return word
		}
	}
}

func randomEvent(r *rand.Rand, i int) audit.Event {
	e := audit.Event{
		Type: audit.Type(word1(r)), Stage: audit.Stage(word1(r)), Time: noon.Add(time.Duration(r.IntN(1000)) * time.Second).UTC(), ID: word1(r),
		V: 1, Seq: uint64(i + 1), Session: "a", //nolint:gosec // small
	}
	if r.IntN(4) > 0 {
		e.Who = &audit.Who{Assurance: word1(r), Host: r.IntN(2) == 0}
		if r.IntN(3) > 0 {
			e.Who.Pod = &audit.WhoPod{Namespace: word1(r), Name: word1(r), ServiceAccount: word1(r)}
			e.Who.Container = &audit.WhoContainer{ID: word1(r), Name: word1(r), Image: word1(r)}
		}
		if r.IntN(3) > 0 {
			e.Who.User = &audit.WhoUser{SID: word1(r), Name: word1(r)}
			e.Who.Process = &audit.WhoProcess{PID: 1, Exe: word1(r)}
		}
	}
	if r.IntN(4) > 0 {
		e.What = &audit.What{Pipe: word1(r), Group: word1(r), Version: word1(r), Method: word1(r), FullMethod: word1(r), Verb: word1(r)}
		for range r.IntN(3) {
			e.What.Targets = append(e.What.Targets, audit.Target{Kind: "path", Value: word1(r), Canonical: word1(r)})
		}
	}
	if r.IntN(4) > 0 {
		e.Decision = &audit.Decision{Effect: audit.Effect(word1(r)), Reason: word1(r), Rule: word1(r), Mode: word1(r)}
		if r.IntN(2) == 0 {
			e.Decision.Policy = &audit.Policy{Name: word1(r), Revision: word1(r), Bundle: uint64(r.IntN(3))} //nolint:gosec // small
		}
	}
	if r.IntN(3) > 0 {
		e.Outcome = &audit.Outcome{Result: word1(r), Code: word1(r), Error: word1(r)}
	}
	if r.IntN(2) == 0 {
		e.Corr, e.Where = &audit.Corr{Conn: word1(r)}, &audit.Where{Node: word1(r)}
	}
	return e
}

// alsoKnown are fields with values that stand nowhere as such: short names, parts of paths, both halves of a pod.
var alsoKnown = map[string]bool{"stage": true, "pod": true, "sa": true, "program": true, "method": true, "pipe": true}

func TestSearchFindsWhatALoopOverTheJSONFinds(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6)) //nolint:gosec // a test that repeats
	var keys []string
	for _, key := range Keys() {
		if places[key] != "" && !alsoKnown[key] && closed[key] == nil {
			keys = append(keys, key)
		}
	}
	if len(keys) < 15 {
		t.Fatalf("only %d fields are compared", len(keys))
	}
	fits := 0
	for i := range 4000 {
		e := randomEvent(r, i%100)
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		var doc map[string]any
		if err := json.Unmarshal(text, &doc); err != nil {
			t.Fatal(err)
		}
		var f Filter
		since, low := noon.Add(time.Duration(r.IntN(1000))*time.Second).UTC(), uint64(r.IntN(50)) //nolint:gosec // small
		want := !e.Time.Before(since) && e.Seq >= low
		terms := fmt.Sprintf("since=%s seq=%d-", since.Format(time.RFC3339), low)
		for _, key := range keys[:1+r.IntN(3)] {
			anyOf, noneOf := false, true
			for range 1 + r.IntN(3) {
				value := formed(r, key)
				anyOf = anyOf || naive(doc, key, value)
				terms += fmt.Sprintf(` %s="%s"`, key, value)
			}
			if r.IntN(3) == 0 {
				value := formed(r, key)
				noneOf = !naive(doc, key, value)
				terms += fmt.Sprintf(` %s!="%s"`, key, value)
			}
			want = want && anyOf && noneOf
		}
		r.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		if err := f.Parse(terms, noon); err != nil {
			t.Fatalf("%s: %v", terms, err)
		}
		if want {
			fits++
		}
		if got := f.Match(&e); got != want {
			t.Fatalf("%s fits %s: %t, want %t", terms, text, got, want)
		}
	}
	if fits < 100 {
		t.Errorf("only %d of the filters fit: the comparison says little", fits)
	}
}

func TestTheZeroFilterChoosesAll(t *testing.T) {
	if !new(Filter).Match(&audit.Event{}) {
		t.Error("an empty filter leaves a record out")
	}
}

func TestEveryFieldOfARecordWithNothingInItIsEmpty(t *testing.T) {
	for key, values := range texts {
		if got := bytes.TrimSpace([]byte(strings.Join(values(&audit.Event{}), ""))); len(got) > 0 && key != "decision" {
			t.Errorf("%s has %q", key, got)
		}
	}
}

func TestAValueThatNoRecordHasIsNamed(t *testing.T) {
	e := audit.Event{Seq: 7, Time: noon, ID: "x", Type: audit.TypeRequest, What: &audit.What{Pipe: "csi-proxy-disk-v1", Method: "Mkdir", Targets: []audit.Target{{Kind: "path", Value: `C:\a\b`}}}}
	for terms, want := range map[string]string{
		"pipe=disk-v9": `pipe "disk-v9"`, "pipe=disk-v1": "", "pipe=disk-v1 pipe=disk-v9": `pipe "disk-v9"`, "method!=Mkdri": `method "Mkdri"`, `path=C:\b`: `path "C:\\b"`, `path=C:\a`: "",
		"seq=8-": `seq "8-"`, "since=2030-01-01": `since "2030-01-01"`, "until=2020-01-01": `until "2020-01-01"`, "since=2020-01-01": "", "decision=deny": "", "image=": "",
		"id=y method=Mkdir": `id "y"`, "rule=x id=y": `rule "x" id "y"`,
	} {
		var f Filter
		if err := f.Parse(terms, noon); err != nil {
			t.Errorf("%s: %v", terms, err)
			continue
		}
		f.Match(&e)
		f.Match(&audit.Event{Seq: 1, Time: noon})
		if got := strings.Join(f.Unseen(), " "); got != want {
			t.Errorf("%s: no record has %s, want %s", terms, got, want)
		}
	}
}

// A code is the result of a request whatever else its result is called: denied, rejected, panic.
func TestACodeIsAResult(t *testing.T) {
	for _, result := range []string{audit.ResultOK, audit.ResultError, audit.ResultDenied, audit.ResultRejected, audit.ResultPanic} {
		e := audit.Event{Outcome: &audit.Outcome{Result: result, Code: "PermissionDenied"}}
		for _, value := range []string{"PermissionDenied", "permission*", "7", result} {
			var f Filter
			if err := f.Want("result", value, time.Now()); err != nil {
				t.Fatal(err)
			}
			if !f.Match(&e) {
				t.Errorf("--result %s does not find a request that was %s", value, result)
			}
		}
	}
}
