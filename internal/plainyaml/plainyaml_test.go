package plainyaml

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestWhatShowsOtherwiseThanItReadsIsRefusedWithItsLine(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"next line":             {"a: 1\n# only this:\u0085b: 2\n", "line 2: U+0085 ends a line"},
		"line separator":        {"a: 1\n# only this:\u2028b: 2\n", "line 2: U+2028 ends a line"},
		"paragraph separator":   {"# only this:\u2029b: 2\n", "line 1: U+2029 ends a line"},
		"carriage return alone": {"a: 1\r\n\r\n# only this:\rb: 2\n", "line 3: U+000D ends a line"},
		"at the end":            {"a: 1\r", "line 1: U+000D"},
		"backspace":             {"a: x\by\n", "line 1: U+0008 does not show"},
		"escape":                {"# \x1b[8m\na: 1\n", "line 1: U+001B"},
		"delete":                {"# \x7f\n", "line 1: U+007F"},
		"right-to-left":         {"\n\na: '\u202eb'\n", "line 3: U+202E does not show"},
		"isolate":               {"a: b # \u2066\n", "line 1: U+2066"},
		"zero width":            {"a: b\u200bc\n", "line 1: U+200B"},
		"soft hyphen":           {"a: b\u00adc\n", "line 1: U+00AD"},
		"no-break space":        {"a: b\u00a0c\n", "line 1: U+00A0"},
		"Hangul filler":         {"a: b\u3164c\n", "line 1: U+3164"},
		"a second mark of UTF":  {"\ufeff\ufeffa: 1\n", "line 1: U+FEFF"},
		"not UTF-8":             {"a: 1\nb: \xff\n", "line 2: not UTF-8"},
		"binary":                {"a: 1\npipes: [!!binary Kg==]\n", "line 2: the tag !!binary"},
		"text":                  {"a: !!str 1\n", "line 1: the tag !!str"},
		"an own tag":            {"a: !x {b: 1}\n", "line 1: the tag !x"},
		"a key with a tag":      {"!!binary Kg==: 1\n", "line 1: the tag !!binary"},
		"another document":      {"a: 1\n---\nb: !!null x\n", "line 3: the tag !!null"},
		"a long tag":            {"a: !<tag:yaml.org,2002:binary> Kg==\n", "line 1: the tag !!binary"},
		"a tag by a handle":     {"%TAG !e! tag:yaml.org,2002:\n---\na: !e!binary Kg==\n", "line 3: the tag !!binary"},
		"a key again":           {"a: {b: 1}\nb: 1\na: 2\n", `line 3: key "a" is already defined`},
		"a key twice within":    {"a: {b: 1, 'b': 1}\n", `line 1: key "b" is already defined`},
		"a word for true":       {"a: {on: 1}\n", `line 1: key "on" is read as another`},
		"a word for false":      {"No: {}\n", `line 1: key "No" is read as another`},
		"a letter for true":     {"y: {}\n", `line 1: key "y" is read as another`},
		"true":                  {"True: {}\n", `line 1: key "True" is read as another`},
		"a key of a fraction":   {"a: {1e3: {}}\n", `line 1: key "1e3" is read as another`},
		"a key of nothing":      {"~: {}\n", `line 1: key "~" is read as another`},
		"an octal number":       {"a: 1\nb: 0400\n", "line 2: a number of another base"},
		"a new octal number":    {"a: [0o17]\n", "line 1: a number of another base"},
		"a hexadecimal number":  {"a: 0x10\n", "line 1: a number of another base"},
		"a binary number":       {"a: -0b1\n", "line 1: a number of another base"},
		"a number in groups":    {"a: 1_000\n", "line 1: a number of another base"},
		"a key with an anchor":  {"a: 1\n&x b: 1\n", "line 2: anchors, aliases and merges"},
		"an alias as a key":     {"- &x b\n- *x : 1\n", "line 2: anchors, aliases and merges"},
		"a key twice":           {"{&d disk: required, *d : off}\n", "line 1: anchors, aliases and merges"},
		"a value in two places": {"a: &x [1]\nb: *x\n", "line 2: anchors, aliases and merges"},
		"an anchor alone":       {"a: 1\nb: &x [1]\n", "line 2: anchors, aliases and merges"},
		"a merge":               {"a: 1\n<<: {b: 1}\n", "line 2: anchors, aliases and merges"},
		"a text in itself":      {"a: &x [*x]\n", "line 1: anchors, aliases and merges"},
		"no YAML":               {"a: [\n", "not valid YAML: yaml: line 1"},
		"an alias of nothing":   {"a: *secret\n", "not valid YAML: an alias"},
		"a key in numbers":      {"a: 1\n\"\\u006cog\": 1\n", `line 2: key "log" has an escape`},
		"a digit in a number":   {`{"é": {"x\x31": 1}}`, `line 1: key "x1" has an escape`},
		"a large number":        {`"\U0000006c": 1`, `line 1: key "l" has an escape`},
		"behind a mark of UTF":  {"\ufeff\"\\x6c\": 1", `line 1: key "l" has an escape`},
		"behind other escapes":  {`"\\\"\u0026\n\x6c": 1`, `has an escape`},
		"in a later document":   {"\"a\": 1\n---\nb: \"\\x6c\"\n\"\\x6c\": 1\n", `line 4: key "l" has an escape`},
		"a key of two lines":    {"? \"lo\\\n  g\"\n: 1\n", `line 1: key "log" has an escape`},
		"many":                  {strings.Repeat("\u200b", 100), "line 1: U+200B"},
	} {
		if err := Check([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) || strings.Count(err.Error(), "\n") >= maxFaults {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestOrdinaryTextsPass(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":                 "",
		"lines of Windows":        "a: 1\r\n# x\r\n",
		"a mark of UTF-8":         "\ufeffa: 1\n",
		"comments in languages":   "# für Grüße, हिन्दी, 日本語, e\u0301\na:\t1\n",
		"an escape":               `a: "\u2028\u202e"`,
		"a JSON document":         `{"a": ["!!binary"]}`,
		"keys of JSON":            `{"k:{\"mountPath\":\"C:\\\\a\u0026b\"}": "\u0061", "C:\\x64": 1, "\u00e9": {"": 1}, "日本": {"b": 1}}`,
		"numbers":                 "a: [0, 1, -20, +3, 1.5, 0.10]\n",
		"a text of digits":        "a: '0400'\nb: 2026-01-02\nc: 12:30\n",
		"words as keys":           "'on': 1\n\"true\": 1\n12: 1\nyesterday: 1\n2026-01-02: on\n",
		"a mark in a quoted text": "a: '!!binary Kg=='\n",
	} {
		if err := Check([]byte(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Keys are found in the text in a time that grows with its length, also where it is one line.
func TestKeysOfALongLine(t *testing.T) {
	var keys strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&keys, `"é%d": 1, `, i)
	}
	began := time.Now()
	err := Check([]byte("{" + keys.String() + `"\u006cog": 1}`))
	if err == nil || err.Error() != `line 1: key "log" has an escape for a character that needs none, and looks like another key: write the character itself` {
		t.Error(err)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestSecondDocuments(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "# x\n": 0, "---\na: 1\n": 0, "a: 1\n...\n": 0, "a: 1\n---\n": 2, "# x\n---\na: 1\n--- # y\n\nb: 2\n": 4, "a: 1\n\r---\rb: 1": 3, "{a: 1}: x\n": 1, "[]:\n": 1, "a: {[b]: 1}\n": 0,
	} {
		if line, err := Second([]byte(text)); line != want || err != nil {
			t.Errorf("%q: line %d, %v, want %d", text, line, err, want)
		}
	}
	for _, text := range []string{"a: [", "a: 1\n...\n]"} {
		if line, err := Second([]byte(text)); err == nil {
			t.Errorf("%q: line %d", text, line)
		}
	}
}
