package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// summary is what a reader of the output sees of a file.
func summary(objects []Object, faults []Fault) (lines []string) {
	for _, o := range objects {
		lines = append(lines, fmt.Sprintf("%s %s %s %s/%s", o.Place, o.APIVersion, o.Kind, o.Namespace, o.Name))
	}
	for _, f := range faults {
		lines = append(lines, "FAULT "+f.Error())
	}
	return lines
}

func TestObjectsAreFoundWithTheirPlaces(t *testing.T) {
	for name, c := range map[string]struct {
		in   string
		want []string
	}{
		"one document of YAML": {
			"apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: ns}\n",
			[]string{"f: document 1 (line 1) v1 Pod ns/a"},
		},
		"documents without content are not counted, lines are": {
			"# head\n---\n---\napiVersion: v1\nkind: Pod\n--- # next\n\n---\nkind: Job\napiVersion: batch/v1\n",
			[]string{"f: document 1 (line 4) v1 Pod /", "f: document 2 (line 9) batch/v1 Job /"},
		},
		"carriage returns before line feeds": {
			"apiVersion: v1\r\nkind: Pod\r\n---\r\napiVersion: v1\r\nkind: Secret\r\n",
			[]string{"f: document 1 (line 1) v1 Pod /", "f: document 2 (line 4) v1 Secret /"},
		},
		"JSON objects one after another": {
			`{"apiVersion":"v1","kind":"Pod"}` + "\n\n" + `{"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"g-"}}`,
			[]string{"f: document 1 (line 1) v1 Pod /", "f: document 2 (line 3) v1 Pod /g-*"},
		},
		"JSON objects with YAML separators": {
			`{"apiVersion":"v1","kind":"Pod"}` + "\n---\n" + `{"apiVersion":"v1","kind":"Secret"}`,
			[]string{"f: document 1 (line 1) v1 Pod /", "f: document 2 (line 3) v1 Secret /"},
		},
		"YAML that begins with a brace": {
			"{apiVersion: v1, kind: Pod}\n",
			[]string{"f: document 1 (line 1) v1 Pod /"},
		},
		"a byte order mark": {
			"\ufeff" + `{"apiVersion":"v1","kind":"Pod"}`,
			[]string{"f: document 1 (line 1) v1 Pod /"},
		},
		"the items of a List": {
			"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod}\n- {apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Secret}]}\n",
			[]string{"f: document 1 (line 1) items[0] v1 Pod /", "f: document 1 (line 1) items[1].items[0] v1 Secret /"},
		},
		"the items of a PodList say nothing of their kind": {
			`{"apiVersion":"v1","kind":"PodList","items":[{"metadata":{"name":"a"}}]}`,
			[]string{"f: document 1 (line 1) items[0] v1 Pod /a"},
		},
		"an empty List is no fault and no object": {
			"apiVersion: v1\nkind: List\nitems: []\n---\napiVersion: v1\nkind: Pod\n",
			[]string{"f: document 2 (line 5) v1 Pod /"},
		},
		"null fields count as absent": {
			"apiVersion: v1\nkind: Pod\nmetadata: null\n",
			[]string{"f: document 1 (line 1) v1 Pod /"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, summary(Read("f", strings.NewReader(c.in)))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestBadInputIsNamedByDocument(t *testing.T) {
	const pod = "apiVersion: v1\nkind: Pod\n"
	for name, c := range map[string]struct {
		in, want string
	}{
		"an empty file":                          {"", "document 1 (line 1): no objects in this file"},
		"comments alone":                         {"# x\n", "no objects in this file"},
		"text":                                   {"hello\n", "document 1 (line 1): not an object"},
		"a list":                                 {"- a\n", "not an object"},
		"no kind":                                {"apiVersion: v1\n", "apiVersion and kind must both be set"},
		"no apiVersion":                          {"kind: Pod\n", "apiVersion and kind must both be set"},
		"Kind for kind":                          {`{"apiVersion":"v1","Kind":"Pod"}`, "apiVersion and kind must both be set"},
		"a number for a kind":                    {"apiVersion: v1\nkind: 1\n", "kind must be a string"},
		"a number for an apiVersion":             {"apiVersion: 1\nkind: Pod\n", "apiVersion must be a string"},
		"a list for metadata":                    {pod + "metadata: []\n", "metadata: not an object"},
		"a number for a namespace":               {pod + "metadata: {namespace: 1}\n", "metadata: namespace must be a string"},
		"a number for a name":                    {pod + "metadata: {name: 1}\n", "metadata: name must be a string"},
		"a key twice in YAML":                    {pod + "spec: {a: 1, a: 2}\n", `key "a" already set in map`},
		"a key twice in the second document":     {pod + "---\n" + pod + "kind: Pod\n", "document 2 (line 4): lines counted within the document: "},
		"a key twice in JSON":                    {`{"apiVersion":"v1","kind":"Pod","spec":{"a":[{}],"a":2}}`, `duplicate field "spec.a"`},
		"a key twice, spelled with an escape":    {`{"apiVersion":"v1","kind":"Pod","\u006bind":"Secret"}`, `duplicate field "kind"`},
		"broken YAML":                            {"a: [\n", "document 1 (line 1): lines counted within the document: yaml: line "},
		"broken JSON":                            {`{"apiVersion":"v1",`, "document 1 (line 1): lines counted within the document: yaml:"},
		"broken JSON behind an object":           {`{"apiVersion":"v1","kind":"Pod"}` + "\n{]", "document 2 (line 2): invalid character ']'"},
		"words behind a separator":               {pod + "--- !x\n" + pod, `document 2 (line 4): nothing but a comment may follow "---"`},
		"a document that kubectl would not send": {pod + "...\n" + pod, `document 1 (line 1): a second document that no line "---" separates`},
		"an object that is a key":                {"{apiVersion: v1, kind: Pod}\n: x\n", `a second document that no line "---" separates`},
		"broken text behind the end":             {pod + "...\n]", `a second document that no line "---" separates`},
		"a list that is a key":                   {"[]: x\n", `a second document that no line "---" separates`},
		"a separator behind a carriage return":   {pod + "\r---\r" + pod, `a second document that no line "---" separates`},
		"items that are no list":                 {"apiVersion: v1\nkind: List\nitems: {}\n", "items must be a list"},
		"an item that is no object":              {"apiVersion: v1\nkind: List\nitems: [1]\n", "items[0]: not an object"},
		"a typed item that is no object":         {"apiVersion: v1\nkind: PodList\nitems: [1]\n", "items[0]: not an object"},
		"an item of no kind in a List":           {"apiVersion: v1\nkind: List\nitems: [{}]\n", "items[0]: apiVersion and kind must both be set"},
		"a half typed item":                      {"apiVersion: v1\nkind: PodList\nitems: [{kind: Pod}]\n", "items[0]: apiVersion and kind must both be set"},
		"Lists without end":                      {nested(6), "lists in lists"},
		"items of a kind that is no list":        {"apiVersion: v1\nkind: Service\nitems: [{apiVersion: v1, kind: Pod}]\n", "a Service with items beside its kind"},
		"no items of a kind that is no list":     {`{"apiVersion":"v1","kind":"ConfigMap","items":[]}`, "a ConfigMap with items beside its kind"},
		"items of an item that is no list":       {"apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Secret, items: [{}]}]\n", "items[0]: a Secret with items beside its kind"},
		"items of an item of a PodList":          {"apiVersion: v1\nkind: PodList\nitems: [{items: [{}]}]\n", "items[0]: a Pod with items beside its kind"},
		"bytes that are no UTF-8":                {"a: \xff\n", "document 1 (line 1): not UTF-8"},
		"an alias bomb":                          {bomb(), "document contains excessive aliasing"},
		"brackets 20,000 deep":                   {pod + "spec: " + strings.Repeat("[", 20000), "exceeded max depth"},
		"brackets 20,000 deep in JSON":           {`{"apiVersion":"v1","kind":"Pod","x":` + strings.Repeat("[", 20000), "exceeded max depth"},
	} {
		t.Run(name, func(t *testing.T) {
			_, faults := Read("f", strings.NewReader(c.in))
			if len(faults) == 0 {
				t.Fatal("no fault reported")
			}
			if got := faults[0].Error(); !strings.HasPrefix(got, "f: document ") || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q in it", got, c.want)
			}
		})
	}
}

// Each document and object takes memory, however few bytes it has.
func TestWhatOneFileHoldsIsBounded(t *testing.T) {
	b := bounds{size: 1 << 20, objects: 100}
	for name, in := range map[string]string{
		"separators":     strings.Repeat("---\n", 200),
		"faults of YAML": strings.Repeat("a\n---\n", 200),
		"JSON":           strings.Repeat("{}\n", 200),
		"items":          `{"apiVersion":"v1","kind":"List","items":[` + strings.Repeat("{},", 200) + `{}]}`,
		"lists of items": strings.Repeat(`{"apiVersion":"v1","kind":"List","items":[{},{}]}`+"\n", 100),
	} {
		objects, faults := b.read("f", strings.NewReader(in))
		if n := len(objects) + len(faults); n == 0 || n > 104 || !strings.Contains(faults[len(faults)-1].Error(), "more than 100 documents or objects") {
			t.Errorf("%s: %d objects and faults, the last %v", name, n, faults[max(0, len(faults)-1):])
		}
	}
	objects, faults := b.read("f", strings.NewReader(strings.Repeat(`{"apiVersion":"v1","kind":"Pod"}`+"\n", 100)))
	if len(objects) != 100 || len(faults) != 0 || objects[99].Line != 100 {
		t.Errorf("%d objects, %v", len(objects), faults)
	}
	if _, faults := b.read("f", strings.NewReader(strings.Repeat(" ", b.size+1))); len(faults) != 1 || !strings.Contains(faults[0].Error(), "more than 1048576 bytes") {
		t.Errorf("a file that is too large: %v", faults)
	}
}

func nested(depth int) string {
	s := `{"apiVersion":"v1","kind":"Pod"}`
	for range depth {
		s = `{"apiVersion":"v1","kind":"List","items":[` + s + `]}`
	}
	return s
}

func bomb() string {
	var b strings.Builder
	b.WriteString("apiVersion: v1\nkind: Pod\na0: &a0 [x,x,x,x,x,x,x,x,x]\n")
	for i := range 9 {
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i), 9), ","))
	}
	return b.String()
}

func TestYAMLIsReadPastAFault(t *testing.T) {
	in := "apiVersion: v1\nkind: Pod\n---\na: [\n---\napiVersion: v1\nkind: Secret\n"
	objects, faults := Read("f", strings.NewReader(in))
	if len(objects) != 2 || len(faults) != 1 || faults[0].Document != 2 || objects[1].Document != 3 {
		t.Errorf("got %q", summary(objects, faults))
	}
}

func TestAReadErrorIsAFault(t *testing.T) {
	_, faults := Read("f", iotest.ErrReader(io.ErrUnexpectedEOF))
	if len(faults) != 1 || !errors.Is(faults[0], io.ErrUnexpectedEOF) {
		t.Errorf("got %v", faults)
	}
}

// Whatever the input, nothing passes in silence, and each object that comes out is one JSON object.
func FuzzReadLosesNothing(f *testing.F) {
	f.Add([]byte("apiVersion: v1\nkind: Pod\n---\nkind: List\napiVersion: v1\nitems: [{apiVersion: v1, kind: Pod}]"))
	f.Add([]byte(`{"apiVersion":"v1","kind":"Pod","a":[{"b":{}}]}{"x":1}`))
	f.Add([]byte("a: &a [*a]\n...\n\r---\r"))
	f.Fuzz(func(t *testing.T, data []byte) {
		objects, faults := Read("f", bytes.NewReader(data))
		for _, o := range objects {
			var fields map[string]any
			if err := json.Unmarshal(o.JSON, &fields); err != nil {
				t.Errorf("object is no JSON: %v", err)
			}
			if fields["kind"] != o.Kind || fields["apiVersion"] != o.APIVersion {
				t.Errorf("object says %v %v, reader says %s %s", fields["apiVersion"], fields["kind"], o.APIVersion, o.Kind)
			}
			if err := noDuplicates(o.JSON); err != nil {
				t.Error(err)
			}
		}
		if len(objects) == 0 && len(faults) == 0 && !bytes.Contains(data, []byte("items")) {
			t.Errorf("nothing came of %q", data)
		}
	})
}
