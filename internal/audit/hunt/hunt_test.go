package hunt

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

const head = "title: T\nid: 1\nlevel: low\nlogsource: {product: pipeguard, service: audit}\n"

func load(t *testing.T, text string) ([]*Rule, error) {
	t.Helper()
	return Load(fstest.MapFS{"a.yml": {Data: []byte(text)}})
}

// fits says whether a rule with this detection finds a record.
func fits(t *testing.T, detection, record string) bool {
	t.Helper()
	rules, err := load(t, head+"detection:\n  "+strings.ReplaceAll(detection, "\n", "\n  ")+"\n")
	if err != nil {
		t.Fatalf("%s: %v", detection, err)
	}
	found, err := New(rules).Ask(ServiceAudit, []byte(record), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return len(found) > 0
}

func TestFieldsAreComparedAsSigmaSays(t *testing.T) {
	record := `{"a":{"b":"Text \\x","n":5,"yes":true,"list":[{"k":"one"},{"k":"two"}],"empty":"","star":"a*c"},"c":"line1\nline2"}`
	for field, want := range map[string]bool{
		`a.b: 'text \x'`:              true,
		`a.b|cased: 'text \x'`:        false,
		`a.b: 'Text'`:                 false,
		`a.b: 'Text*'`:                true,
		`a.b: 'T?xt ?x'`:              true,
		`a.b|contains: 'XT'`:          true,
		`a.b|startswith: 'text'`:      true,
		`a.b|startswith: 'ext'`:       false,
		`a.b|endswith: '\x'`:          true,
		`a.b|endswith: '\'`:           false,
		`a.b|re: '^Text .x$'`:         true,
		`a.b|re: '^text'`:             false,
		`a.n: 5`:                      true,
		`a.n: '5'`:                    true,
		`a.n|lt: 6`:                   true,
		`a.n|lt: 5`:                   false,
		`a.n|lte: 5`:                  true,
		`a.n|gt: 4.5`:                 true,
		`a.n|gte: 6`:                  false,
		`a.b|gt: 1`:                   false,
		`a.yes: true`:                 true,
		`a.yes: false`:                false,
		`a.list.k: two`:               true,
		`a.list.k: [none, one]`:       true,
		`a.list.k|all: [one, two]`:    true,
		`a.list.k|all: [one, three]`:  false,
		`a.b|contains|all: [te, '\']`: true,
		`a.none: null`:                true,
		`a.empty: null`:               true,
		`a.b: null`:                   false,
		`a.none|exists: false`:        true,
		`a.n|exists: true`:            true,
		`a.star: 'a\*c'`:              true,
		`a.star: 'a\?c'`:              false,
		`c|contains: "1\nl"`:          true,
		`c: 'line1*2'`:                true,
		`a.n|lt|fieldref: a.list.k`:   false,
		`a.n|lte|fieldref: a.n`:       true,
		`a.b|fieldref: a.b`:           true,
		`a.b|fieldref: c`:             false,
		`a.star|fieldref: a.b`:        false,
		`A.B: x`:                      false, // names of fields are exact
		"{a.n: 5, a.yes: true}":       true,
		"{a.n: 5, a.yes: false}":      false,
		"[{a.n: 6}, {a.yes: true}]":   true,
		"[{a.n: 6}, {a.yes: false}]":  false,
		`a.b: '(?i).*'`:               false, // a value is no expression
		`a.b|contains: '.'`:           false,
	} {
		if !strings.HasPrefix(field, "{") && !strings.HasPrefix(field, "[") {
			field = "\n  " + field
		}
		if got := fits(t, "s: "+field+"\ncondition: s", record); got != want {
			t.Errorf("%s fits: %t, want %t", strings.TrimSpace(field), got, want)
		}
	}
}

func TestConditionsAreReadAsSigmaSays(t *testing.T) {
	for condition, want := range map[string]bool{
		"yes and not no":                 true,
		"no or yes":                      true,
		"no and yes or yes":              true,
		"no and (yes or yes)":            false,
		"not (no or yes)":                false,
		"not not yes and not no":         true,
		"1 of them":                      true,
		"all of them":                    false,
		"1 of y* and not 1 of n*":        true,
		"all of y* and not no":           true,
		"not yes or no":                  false,
		"((yes)) and not ((no))":         true,
		"yes and not all of them":        true,
		"not 1 of them":                  false,
		"no or no or not no and yes":     true,
		"yes and yes and yes and not no": true,
	} {
		if got := fits(t, "yes: {a: 1}\nno: {a: 2}\ncondition: "+condition, `{"a":1}`); got != want {
			t.Errorf("%s: %t, want %t", condition, got, want)
		}
	}
}

func TestRulesThatAreNotUnderstoodAreRefused(t *testing.T) {
	detection := "detection: {s: {a: 1}, condition: s}\n"
	correlation := "title: C\nid: 2\nlevel: low\ncorrelation:\n  type: event_count\n  rules: [part]\n  group-by: [a]\n  timespan: 5m\n  condition: {gte: 2}\n"
	part := head + "name: part\n" + detection
	if _, err := load(t, part+"---\n"+correlation); err != nil {
		t.Fatalf("the rules that are spoiled below: %v", err)
	}
	for name, text := range map[string]string{
		"nothing":                         "",
		"text":                            "hello",
		"no title":                        strings.Replace(head, "title: T", "title: ''", 1) + detection,
		"no id":                           strings.Replace(head, "id: 1", "id: ''", 1) + detection,
		"an unknown level":                strings.Replace(head, "low", "lowest", 1) + detection,
		"an unknown key":                  head + detection + "detections: {}\n",
		"an unknown service":              strings.Replace(head, "audit", "kernel", 1) + detection,
		"another product":                 strings.Replace(head, "pipeguard", "windows", 1) + detection,
		"no detection":                    head,
		"no condition":                    head + "detection: {s: {a: 1}}\n",
		"an empty condition":              head + "detection: {s: {a: 1}, condition: ''}\n",
		"a list of conditions":            head + "detection: {s: {a: 1}, condition: [s]}\n",
		"an unknown search":               head + "detection: {s: {a: 1}, condition: t}\n",
		"a search that is not used":       head + "detection: {s: {a: 1}, t: {a: 1}, condition: s}\n",
		"an open parenthesis":             head + "detection: {s: {a: 1}, condition: '(s'}\n",
		"a closing parenthesis":           head + "detection: {s: {a: 1}, condition: 's)'}\n",
		"and without a right side":        head + "detection: {s: {a: 1}, condition: 's and'}\n",
		"two searches in a row":           head + "detection: {s: {a: 1}, condition: 's s'}\n",
		"an aggregation":                  head + "detection: {s: {a: 1}, condition: 's | count() > 5'}\n",
		"2 of them":                       head + "detection: {s: {a: 1}, condition: '2 of them'}\n",
		"1 of nothing":                    head + "detection: {s: {a: 1}, condition: '1 of x*'}\n",
		"1 of a broken pattern":           head + "detection: {s: {a: 1}, condition: '1 of ['}\n",
		"much too deep":                   head + "detection: {s: {a: 1}, condition: '" + strings.Repeat("not ", 50) + "s'}\n",
		"words without a field":           head + "detection: {s: [a, b], condition: s}\n",
		"an empty search":                 head + "detection: {s: {}, condition: s}\n",
		"an empty list":                   head + "detection: {s: [], condition: s}\n",
		"a search that is text":           head + "detection: {s: a, condition: s}\n",
		"a field without a value":         head + "detection: {s: {a: []}, condition: s}\n",
		"a value that is a map":           head + "detection: {s: {a: {b: c}}, condition: s}\n",
		"an unknown modifier":             head + "detection: {s: {a|base64: x}, condition: s}\n",
		"two ways to compare":             head + "detection: {s: {a|contains|endswith: x}, condition: s}\n",
		"a broken expression":             head + "detection: {s: {a|re: '('}, condition: s}\n",
		"an expression that looks back":   head + "detection: {s: {a|re: '(?=x)'}, condition: s}\n",
		"less than a text":                head + "detection: {s: {a|lt: x}, condition: s}\n",
		"exists with a text":              head + "detection: {s: {a|exists: x}, condition: s}\n",
		"null with a modifier":            head + "detection: {s: {a|contains: null}, condition: s}\n",
		"fieldref of an expression":       head + "detection: {s: {a|re|fieldref: b}, condition: s}\n",
		"a field without a name":          head + "detection: {s: {'|contains': b}, condition: s}\n",
		"two rules of one id":             part + "---\n" + part,
		"a correlation of nothing":        correlation,
		"a correlation of a correlation":  part + "---\n" + strings.Replace(correlation, "id: 2", "id: 2\nname: again", 1) + "---\n" + strings.NewReplacer("id: 2", "id: 3", "part", "again").Replace(correlation),
		"a correlation of another type":   part + "---\n" + strings.Replace(correlation, "event_count", "value_count", 1),
		"a correlation without time":      part + "---\n" + strings.Replace(correlation, "5m", "''", 1),
		"a correlation without end":       part + "---\n" + strings.Replace(correlation, "5m", "1000h", 1),
		"a correlation of one":            part + "---\n" + strings.Replace(correlation, "gte: 2", "gte: 1", 1),
		"a correlation with less":         part + "---\n" + strings.Replace(correlation, "gte: 2", "lt: 2", 1),
		"a correlation that counts long":  part + "---\n" + strings.Replace(correlation, "gte: 2", "gte: 100000", 1),
		"a detection and a correlation":   part + "---\n" + correlation + "detection: {s: {a: 1}, condition: s}\n",
		"a file that ends within a value": head + "detection: {s: {a: '1",
	} {
		if _, err := load(t, text); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	if _, err := Load(fstest.MapFS{"readme.md": {}}); err == nil {
		t.Error("a directory without rules is taken")
	}
}

func TestEveryFaultIsReportedAtOnce(t *testing.T) {
	_, err := Load(fstest.MapFS{"a.yml": {Data: []byte("x")}, "b.yml": {Data: []byte(head)}, "c.yml": {Data: []byte("title: 7: 8")}})
	for _, name := range []string{"a.yml", "b.yml", "c.yml"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not in %v", name, err)
		}
	}
}

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// bursts asks a correlation of three within a minute about records at these seconds, each of a group, and returns when it fires.
func bursts(t *testing.T, group func(i int) string, seconds ...int) (at []int) {
	t.Helper()
	rules, err := load(t, head+"name: part\ndetection: {s: {a: 1}, condition: s}\n---\ntitle: C\nid: 2\nlevel: high\ncorrelation:\n  type: event_count\n  rules: [part]\n  group-by: [g, h]\n  timespan: 1m\n  condition: {gte: 3}\n")
	if err != nil {
		t.Fatal(err)
	}
	h := New(rules)
	for i, s := range seconds {
		found, err := h.Ask(ServiceAudit, fmt.Appendf(nil, `{"a":1,"g":%q}`, group(i)), start.Add(time.Duration(s)*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		for range found {
			at = append(at, s)
		}
	}
	return at
}

func TestABurstIsSoManyOfOneGroupWithinATime(t *testing.T) {
	same := func(int) string { return "x" }
	for name, c := range map[string]struct {
		group   func(int) string
		seconds []int
		want    string
	}{
		"three at once":                   {same, []int{0, 0, 0}, "[0]"},
		"three within the time":           {same, []int{0, 30, 60}, "[60]"},
		"two":                             {same, []int{0, 1}, "[]"},
		"too slow":                        {same, []int{0, 30, 61, 92}, "[]"},
		"the last three":                  {same, []int{0, 50, 70, 80}, "[80]"},
		"of different groups":             {func(i int) string { return fmt.Sprint(i) }, []int{0, 0, 0, 0}, "[]"},
		"again after six":                 {same, []int{0, 0, 0, 1, 1, 1}, "[0 1]"},
		"a clock that was set back":       {same, []int{100, 100, 0}, "[0]"},
		"groups that look alike in a row": {func(i int) string { return []string{`a"`, `a`, `"a`}[i%3] }, []int{0, 0, 0}, "[]"},
	} {
		if got := fmt.Sprint(bursts(t, c.group, c.seconds...)); got != c.want {
			t.Errorf("%s: found at %s, want %s", name, got, c.want)
		}
	}
}

func TestGroupsOfABurstAreBounded(t *testing.T) {
	b := &burst{by: []string{"g"}, span: time.Hour, count: 3, groups: map[string][]time.Time{}}
	for i := range maxGroups + 100 {
		b.add(Fields{"g": {fmt.Sprint(i)}}, 1, start)
	}
	if len(b.groups) > maxGroups || b.lost < 100 {
		t.Errorf("%d groups, %d lost", len(b.groups), b.lost)
	}
	lost := b.lost
	for i := range maxGroups { // what is over makes room and is not lost
		b.add(Fields{"g": {fmt.Sprint("later", i)}}, 1, start.Add(3*time.Hour))
	}
	if b.lost != lost {
		t.Errorf("%d more are lost", b.lost-lost)
	}
}

func TestARecordCannotSayWhatIsDerived(t *testing.T) {
	rule := "s: {derived.bundle_before|exists: true}\ncondition: s"
	for _, record := range []string{`{"derived":{"bundle_before":7}}`, `{"derived.bundle_before":7}`} {
		if fits(t, rule, record) {
			t.Errorf("%s is believed", record)
		}
	}
}

func TestALineThatIsNoObjectIsAnError(t *testing.T) {
	rules, err := load(t, head+"detection: {s: {a: 1}, condition: s}\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range []string{"", "x", "[]", "7", `{"a":`} {
		if _, err := New(rules).Ask(ServiceAudit, []byte(doc), time.Time{}); err == nil {
			t.Errorf("%q is taken", doc)
		}
	}
}

func FuzzRule(f *testing.F) {
	f.Add("detection: {s: {a|contains: '*x'}, condition: 1 of them}", `{"a":"x"}`)
	f.Add("detection: {s: [{a|re: '.*'}, {b: null}], condition: not (s)}", `{"b":[1,true]}`)
	f.Fuzz(func(t *testing.T, text, record string) {
		rules, err := Load(fstest.MapFS{"a.yml": {Data: []byte(head + text)}})
		if err != nil {
			return
		}
		_, _ = New(rules).Ask(ServiceAudit, []byte(record), time.Time{}) // it must not panic
	})
}
