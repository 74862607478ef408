package scan

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func readAll(body io.Reader) (items []string, next string, err error) {
	next, err = readPage(body, func(raw []byte) error {
		items = append(items, string(raw))
		return nil
	})
	return items, next, err
}

func TestReadPageGivesEachObjectAndTheNextToken(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		items []string
		next  string
	}{
		"the usual order":        {`{"kind":"PodList","metadata":{"resourceVersion":"1","continue":"c"},"items":[{"a":1}, {"b":[2]}]}`, []string{`{"a":1}`, `{"b":[2]}`}, "c"},
		"metadata after objects": {`{"items":[{"a":1}],"metadata":{"continue":"c"}}`, []string{`{"a":1}`}, "c"},
		"the last page":          {`{"metadata":{"resourceVersion":"1"},"items":[{}]}`, []string{`{}`}, ""},
		"no objects":             {`{"metadata":{},"items":[]}`, nil, ""},
		"null for no objects":    {`{"metadata":{},"items":null}`, nil, ""},
		"unknown members":        {`{"x":{"items":[1]},"metadata":{"remainingItemCount":3},"items":[{}],"y":null}`, []string{`{}`}, ""},
	} {
		for _, body := range []io.Reader{strings.NewReader(c.text), iotest.OneByteReader(strings.NewReader(c.text))} {
			items, next, err := readAll(body)
			if err != nil || next != c.next || !cmp.Equal(items, c.items) {
				t.Errorf("%s: %q, %q, %v", name, items, next, err)
			}
		}
	}
}

func TestReadPageRefusesWhatIsNoWholeList(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":                        ``,
		"an array":                       `[]`,
		"null":                           `null`,
		"text":                           `not found`,
		"a Status":                       `{"kind":"Status","metadata":{},"code":200}`,
		"objects that are no array":      `{"items":{"a":1}}`,
		"objects that are a text":        `{"items":"x"}`,
		"an end after the first object":  `{"metadata":{},"items":[{"a":1}`,
		"an end within an object":        `{"metadata":{},"items":[{"a":1},{"b"`,
		"an end before the metadata end": `{"items":[],"metadata":{"continue":"c"`,
		"an end before the last brace":   `{"metadata":{},"items":[{"a":1}]`,
		"a token that is no text":        `{"metadata":{"continue":3},"items":[]}`,
		"no comma":                       `{"items":[{} {}]}`,
	} {
		if items, next, err := readAll(strings.NewReader(text)); err == nil {
			t.Errorf("%s: read as %q and %q", name, items, next)
		}
	}
}

func TestReadPageReturnsTheErrorOfWhoTakesTheObjects(t *testing.T) {
	want := errors.New("enough")
	n := 0
	_, err := readPage(strings.NewReader(`{"items":[{},{}]}`), func([]byte) error { n++; return want })
	if !errors.Is(err, want) || n != 1 {
		t.Errorf("readPage = %v after %d objects", err, n)
	}
}

// A page of many large objects needs no more memory than one of them.
func TestReadPageHoldsOneObject(t *testing.T) {
	const large = 1 << 20
	object := `{"a":"` + strings.Repeat("x", large) + `"}`
	parts := []io.Reader{strings.NewReader(`{"metadata":{},"items":[`)}
	for range 50 {
		parts = append(parts, strings.NewReader(object), strings.NewReader(","))
	}
	parts = append(parts, strings.NewReader(`{}]}`))
	n := 0
	result := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			n = 0
			for _, p := range parts {
				_, _ = p.(*strings.Reader).Seek(0, io.SeekStart)
			}
			if _, err := readPage(io.MultiReader(parts...), func([]byte) error { n++; return nil }); err != nil {
				b.Fatal(err)
			}
		}
	})
	if n != 51 {
		t.Fatalf("read %d objects", n)
	}
	if got := result.AllocedBytesPerOp(); got > 12*large {
		t.Errorf("a page of 50 MiB takes %d bytes, want a few times one object", got)
	}
}

func FuzzReadPage(f *testing.F) {
	f.Add([]byte(`{"metadata":{"continue":"c"},"items":[{"a":1},{}]}`))
	f.Add([]byte(`{"items":null}`))
	f.Add([]byte(`{"items":[]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		items, next, err := readAll(bytes.NewReader(text))
		if err != nil {
			return
		}
		for _, item := range items { // readHead refuses others
			if !json.Valid([]byte(item)) {
				return
			}
		}
		// What was read is what a reader of the whole text finds. It takes the last of equal keys and folds case, so
		// that only their number can be compared, and only upwards.
		d := json.NewDecoder(bytes.NewReader(text))
		var whole struct {
			Metadata struct{ Continue string }
			Items    []json.RawMessage
		}
		if err := d.Decode(&whole); err != nil {
			t.Fatalf("read as %q and %q, and encoding/json says %v", items, next, err)
		}
		if bytes.Count(bytes.ToLower(text), []byte("items")) == 1 && len(whole.Items) != len(items) {
			t.Fatalf("read %d objects of %d", len(items), len(whole.Items))
		}
	})
}
