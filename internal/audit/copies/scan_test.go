package copies

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/internal/audit"
)

func TestOnlyWhatIsKnownToBeFineIsFine(t *testing.T) {
	intent := func(e *audit.Event) { e.Stage, e.Outcome = audit.StageRequestReceived, nil }
	result := func(s string) func(*audit.Event) { return func(e *audit.Event) { e.Outcome.Result = s } }
	both := func(fs ...func(*audit.Event)) func(*audit.Event) {
		return func(e *audit.Event) {
			for _, f := range fs {
				f(e)
			}
		}
	}
	for name, tc := range map[string]struct {
		edit func(*audit.Event)
		want bool
	}{
		"a call that ended well": {func(*audit.Event) {}, true},
		"an intent":              {intent, true},
		"a connection that carried nothing": {func(e *audit.Event) {
			e.Type, e.Outcome.Result, e.Decision = audit.TypeConnection, audit.ResultIdle, nil
		}, true},
		"a denial":                       {denied, false},
		"a denial that was not enforced": {both(denied, result(audit.ResultOK), func(e *audit.Event) { e.Decision.Mode = modeLogOnly }), false},
		"the intent of one":              {both(denied, intent), false},
		"an error":                       {result(audit.ResultError), false},
		"a rejected call":                {result(audit.ResultRejected), false},
		"a panic":                        {both(result(audit.ResultPanic), func(e *audit.Event) { e.Stage = audit.StagePanic }), false},
		"an orphan":                      {both(result(audit.ResultOrphaned), func(e *audit.Event) { e.Stage = audit.StageOrphaned }), false},
		"an orphan that claims to have gone well": {func(e *audit.Event) { e.Stage = audit.StageOrphaned }, false},
		"a result that nobody knows":              {result("fine"), false},
		"an effect that nobody knows":             {func(e *audit.Event) { e.Decision.Effect = "maybe" }, false},
		"no end":                                  {func(e *audit.Event) { e.Outcome = nil }, false},
		"the log's own":                           {func(e *audit.Event) { e.Type, e.Stage = audit.TypeLog, audit.StageLogOpen }, false},
		"a type that nobody knows":                {func(e *audit.Event) { e.Type = "x" }, false},
		"a denial whose caller has a name that says otherwise": {both(denied, func(e *audit.Event) {
			e.What.Pipe = `","decision":{"effect":"allow"},"outcome":{"result":"ok"},"x":"`
			e.Who.Process.Exe = `\","outcome":{"result":"ok"}`
			e.What.Params = []byte(`{"decision":{"effect":"allow"},"outcome":{"result":"ok"},"decision.effect":"allow"}`)
		}), false},
		"a fine call whose caller has a name that says otherwise": {func(e *audit.Event) {
			e.What.Pipe = `","decision":{"effect":"deny"},"x":"`
			e.What.Params = []byte(`{"decision":{"effect":"deny"},"outcome":{"result":"panic"},"decision.effect":"deny","type":"log"}`)
		}, true},
	} {
		if got := isUneventful(bytes.TrimSpace(line(t, tc.edit))); got != tc.want {
			t.Errorf("%s: fine is %t", name, got)
		}
	}
	fine := strings.TrimSpace(string(line(t)))
	for name, l := range map[string]string{
		"nothing": "", "a word": "x", "a list": "[]", "an empty object": "{}", "half a record": fine[:len(fine)/2], "a record and more": fine + "x", "two records": fine + fine,
		"no type":                      strings.Replace(fine, `"type":"request",`, "", 1),
		"an escaped effect":            strings.Replace(fine, `"effect":"allow"`, `"effect":"\u0064eny"`, 1),
		"an escaped name":              strings.Replace(fine, `"effect":"allow"`, `"\u0065ffect":"deny"`, 1),
		"a second effect":              strings.Replace(fine, `"effect":"allow"`, `"effect":"allow","effect":"deny"`, 1),
		"a first effect":               strings.Replace(fine, `"effect":"allow"`, `"effect":"deny","effect":"allow"`, 1),
		"a decision that is no object": strings.Replace(fine, `"decision":{`, `"decision":"deny","x":{`, 1),
		"a dotted name":                strings.Replace(fine, `"v":1`, `"v":1,"outcome.result":"ok"`, 1),
		"a list as outcome":            strings.Replace(fine, `"outcome":{`, `"outcome":[{}],"x":{`, 1),
	} {
		if isUneventful([]byte(l)) {
			t.Errorf("%s is fine", name)
		}
	}
}

// flat is what scan should find, by another reader. Where a name stands twice it does not know which.
func flat(t *testing.T, doc []byte) (found map[string]string, isUsual bool) {
	found, isUsual = map[string]string{}, true
	var read func(prefix string, depth int, raw json.RawMessage)
	read = func(prefix string, depth int, raw json.RawMessage) {
		d := json.NewDecoder(bytes.NewReader(raw))
		if _, err := d.Token(); err != nil {
			t.Fatal(err)
		}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				t.Fatal(err)
			}
			name, ok := key.(string)
			var v json.RawMessage
			if err := d.Decode(&v); err != nil || !ok {
				t.Fatal(err)
			}
			path := strings.TrimPrefix(prefix+"."+name, ".")
			if quoted, _ := json.Marshal(name); string(quoted) != `"`+name+`"` || !bytes.Contains(doc, quoted) || strings.ContainsAny(name, `."\`) || len(path) > 60 || found[path] != "" || prefix+name == "" {
				isUsual = false
			}
			v = bytes.TrimSpace(v)
			if depth < mostDepth && v[0] == '{' && path != "what.params" {
				read(path, depth+1, v)
				continue
			}
			found[path] = string(v)
		}
	}
	read("", 1, doc)
	return found, isUsual
}

func FuzzScan(f *testing.F) {
	f.Add(line(f))
	f.Add(line(f, denied))
	for _, s := range []string{
		`{}`, `{"a":1}`, ` { "a" : [ 1 , {"b":"]"} ] , "c":{"d":{"e":{"f":1}}} } `, `{"what":{"params":{"decision":{}}}}`, `{"a":"\\"}`, `{"a":"\""}`, `{"a":1,}`, `{"a"`, `{"a":`,
		`{"decision":{"effect":"deny"}}`, `{"type":"request","outcome":{"result":"ok"}}`, `{"a":-1.5e3,"b":null,"c":true}`, `{"a":}`, `{"a":{"b":}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		got, twice := map[string]string{}, false
		ok := scan(doc, func(path, raw []byte) {
			_, seen := got[string(path)]
			twice = twice || seen
			got[string(path)] = string(raw)
		})
		fine := isUneventful(doc)
		facts := factsOf(doc)
		if n := len(recordText(facts.kind(), &facts, doc)); n == 0 {
			t.Error("an event without text")
		}
		trimmed := bytes.TrimSpace(doc)
		if !json.Valid(doc) || len(trimmed) == 0 || trimmed[0] != '{' {
			return // whatever is found, it is not a record of the log
		}
		want, isUsual := flat(t, trimmed)
		if !isUsual || twice {
			return
		}
		if !ok {
			t.Fatalf("%q is an object and was not read", doc)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
		if unquote := func(path string) (s string) { _ = json.Unmarshal([]byte(want[path]), &s); return s }; fine &&
			(unquote("decision.effect") == "deny" || unquote("type") == "log" || unquote("outcome.result") == "denied" || unquote("outcome.result") == "panic") {
			t.Fatalf("%q is fine", doc)
		}
	})
}

func TestAFieldThatMeansNothingIsLeftOut(t *testing.T) {
	f := factsOf([]byte("{\"id\":\"a\x01b\",\"session\":\"\\x\",\"seq\":01,\"type\":[1],\"stage\":\"a\\u0001b\",\"time\":true,\"where\":{\"node\":\"ü\",\"node\":\"second\"}}"))
	want := []fact{{"pipeguard.stage", "a\x01b", false}, {"pipeguard.time", "true", false}, {"pipeguard.where.node", "ü", false}}
	if diff := cmp.Diff(want, f.list, cmp.AllowUnexported(fact{})); diff != "" {
		t.Error(diff)
	}
}
