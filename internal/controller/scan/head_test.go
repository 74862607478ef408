package scan

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadHeadReadsMetadata(t *testing.T) {
	got, err := readHead([]byte(`{
		"kind": "Pod", "apiVersion": "v1",
		"metadata": {
			"name": "n", "generateName": "g", "namespace": "ns", "uid": "u", "resourceVersion": "7",
			"labels": {"a": "b"}, "annotations": {"x": "y", "kubernetes.io/config.mirror": "h"},
			"ownerReferences": [{"kind": "A", "name": "a"}, {"kind": "B", "name": "b", "controller": true}, {"kind": "C", "name": "c", "controller": false}]
		},
		"spec": {"metadata": {"name": "other"}}
	}`))
	want := head{
		kind: "Pod", apiVersion: "v1", name: "n", namespace: "ns", uid: "u", version: "7",
		labels: map[string]string{"a": "b"}, isMirror: true, controller: "B/b",
	}
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(head{})); d != "" {
		t.Errorf("readHead (-want +got):\n%s", d)
	}
}

func TestReadHeadTellsAMirrorFromWhatLooksLikeOne(t *testing.T) {
	for annotations, want := range map[string]bool{
		`{"kubernetes.io/config.mirror":""}`:                    true,
		`{"kubernetes.io/config.mirror":"h","z":"z"}`:           true,
		`{"kubernetes.io/Config.Mirror":"h"}`:                   false,
		`{"x":"kubernetes.io/config.mirror"}`:                   false,
		`{"kubernetes.io/config.source":"file"}`:                false,
		`{"kubernetes.io/config.mirror.evil":"h"}`:              false,
		`{"example.com/kubernetes.io":"config.mirror","a":"b"}`: false,
		`null`: false,
	} {
		h, err := readHead([]byte(`{"metadata":{"name":"n","uid":"u","resourceVersion":"1","annotations":` + annotations + `}}`))
		if err != nil || h.isMirror != want {
			t.Errorf("%s: isMirror = %v, %v; want %v", annotations, h.isMirror, err, want)
		}
	}
}

func TestReadHeadRefusesWhatNoAPIServerLists(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":              ``,
		"null":                 `null`,
		"an array":             `[]`,
		"no metadata":          `{}`,
		"no name":              `{"metadata":{"uid":"u","resourceVersion":"1"}}`,
		"no uid":               `{"metadata":{"name":"n","resourceVersion":"1"}}`,
		"no resourceVersion":   `{"metadata":{"name":"n","uid":"u"}}`,
		"a name of 3":          `{"metadata":{"name":3,"uid":"u","resourceVersion":"1"}}`,
		"labels that are text": `{"metadata":{"name":"n","uid":"u","resourceVersion":"1","labels":"x"}}`,
		"text after the end":   `{"metadata":{"name":"n","uid":"u","resourceVersion":"1"}}{}`,
	} {
		if h, err := readHead([]byte(text)); err == nil {
			t.Errorf("%s: read as %+v", name, h)
		}
	}
}

func TestTypedAddsTheTypeThatAListLeavesOut(t *testing.T) {
	deployment := judgedKinds()[3]
	for _, c := range []struct{ raw, want string }{
		{`{"metadata":{"name":"n"}}`, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"n"}}`},
		{" { \n \"metadata\":{}}", `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{}}`},
	} {
		h := head{}
		if got := string(h.typed(nil, []byte(c.raw), deployment)); got != c.want {
			t.Errorf("typed(%s) = %s, want %s", c.raw, got, c.want)
		}
	}
	// An object that says what it is stays as it is: whoever judges it refuses a type that it does not know.
	raw := `{"kind":"Other","metadata":{}}`
	h := head{kind: "Other"}
	if got := string(h.typed(nil, []byte(raw), deployment)); got != raw {
		t.Errorf("typed(%s) = %s", raw, got)
	}
}

func FuzzReadHead(f *testing.F) {
	f.Add([]byte(`{"kind":"Pod","metadata":{"name":"n","namespace":"ns","uid":"u","resourceVersion":"1"}}`))
	f.Add([]byte(`{"metadata":{"name":"n","uid":"u","resourceVersion":"1","ownerReferences":[{"controller":true}]},"spec":{}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		h, err := readHead(raw)
		if err != nil {
			return
		}
		if !json.Valid(raw) {
			t.Fatalf("read %+v from what is no JSON", h)
		}
		typed := h.typed(nil, raw, judgedKinds()[0])
		if !json.Valid(typed) {
			t.Fatalf("typed makes %q of %q", typed, raw)
		}
		again, err := readHead(typed)
		if err != nil || again.name != h.name || again.uid != h.uid || again.kind == "" && again.apiVersion == "" {
			t.Fatalf("typed makes %+v (%v) of %+v", again, err, h)
		}
	})
}

func TestAnObjectThatIsTooDeepToBeJudgedHasAHead(t *testing.T) {
	for _, depth := range []int{100, 200, 9_990, 10_010} {
		raw := `{"metadata":{"name":"p","uid":"u","resourceVersion":"1","managedFields":[{"fieldsV1":` + strings.Repeat(`{"f:x":`, depth) + "{}" + strings.Repeat("}", depth) + `}]},"spec":{}}`
		if h, err := readHead([]byte(raw)); err != nil || h.name != "p" {
			t.Errorf("%d levels: %+v, %v", depth, h, err)
		}
	}
}
