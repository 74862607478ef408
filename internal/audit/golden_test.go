package audit

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write golden files: of a version that has none, and records that are new")

// changed is what to do when the format is not what it was.
const changed = `The format of records is not what the golden files of this version say. Records of released versions are on disks that
nobody rewrites, so: raise Version, keep reading what was there before, and run
	go test ./internal/audit -run Golden -update
for the files of the new version. If version %d was never released, remove %s first and do the same with the version as it is.`

// versionDir holds the golden files of a version.
func versionDir(version int) string {
	return filepath.Join("testdata", fmt.Sprintf("v%d", version))
}

// golden returns the content of the golden files of this version by their names.
func golden(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{"fields.txt": strings.Join(shape(reflect.TypeFor[Event](), ""), "\n") + "\n"}
	for _, g := range goldenEvents() {
		line, err := Encode(nil, g.event)
		if err != nil {
			t.Fatalf("%s: %v", g.name, err)
		}
		files[string(g.event.Type)+".jsonl"] += string(line)
	}
	return files
}

// shape lists every field of a record with its type, in the order in which it is written.
func shape(t reflect.Type, path string) (out []string) {
	for _, f := range reflect.VisibleFields(t) {
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		name = strings.TrimPrefix(path+"."+name, ".")
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s", name, f.Type.Kind(), rest)))
		inner := f.Type
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct && inner != reflect.TypeFor[time.Time]() {
			out = append(out, shape(inner, name)...)
		}
	}
	return out
}

// extend writes what is missing. What is there stays as it is.
func extend(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range want {
		path := filepath.Join(dir, name)
		there, err := os.ReadFile(path)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if err == nil && (name == "fields.txt" || !strings.HasPrefix(text, string(there))) {
			continue
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestGoldenFilesAreWhatThisVersionWrites(t *testing.T) {
	dir, want := versionDir(Version), golden(t)
	if *update {
		extend(t, dir, want)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != len(want) {
		t.Fatalf("%d files, want %d, %v\n"+changed, len(entries), len(want), err, Version, dir)
	}
	for name, text := range want {
		there, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.SplitAfter(string(there), "\n"), strings.SplitAfter(text, "\n")); diff != "" {
			t.Errorf("%s: %s\n"+changed, name, diff, Version, dir)
		}
	}
}

func TestGoldenRecordsOfEveryVersionAreRead(t *testing.T) {
	for version := 1; version <= Version; version++ {
		names, err := filepath.Glob(filepath.Join(versionDir(version), "*.jsonl"))
		if err != nil || len(names) == 0 {
			t.Fatalf("version %d has no golden files, %v", version, err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for event, err := range read(string(text)) {
				if err != nil || event.V != version {
					t.Errorf("%s: a record of version %d, %v", name, event.V, err)
				}
			}
		}
	}
}

func TestGoldenRecordsGiveTheValueBack(t *testing.T) {
	for _, g := range goldenEvents() {
		line, err := Encode(nil, g.event)
		if err != nil {
			t.Fatal(err)
		}
		back, err := Parse(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil {
			t.Fatalf("%s: %v", g.name, err)
		}
		again, err := Encode(nil, back)
		if err != nil || !bytes.Equal(again, line) {
			t.Errorf("%s: written again as %s, %v", g.name, again, err)
		}
		if diff := cmp.Diff(g.event, back); (diff == "") == g.isCut {
			t.Errorf("%s: cut %t, read back with the difference %s", g.name, g.isCut, diff)
		}
	}
}

func TestGoldenRecordsHoldEveryFieldAndEveryWord(t *testing.T) {
	fields, words, stages := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, g := range goldenEvents() {
		line, err := Encode(nil, g.event)
		if err != nil {
			t.Fatal(err)
		}
		var doc map[string]any
		if err := json.Unmarshal(line, &doc); err != nil {
			t.Fatal(err)
		}
		present(doc, "", fields)
		stages[string(g.event.Type)+" "+string(g.event.Stage)] = true
		if g.event.Outcome != nil {
			words[g.event.Outcome.Result] = true
		}
		if g.event.Log != nil {
			words[g.event.Log.Cause] = true
		}
		if g.event.Who != nil {
			words[g.event.Who.TokenState] = true
		}
		if g.event.Decision != nil {
			words[string(g.event.Decision.Effect)] = true
		}
	}
	for _, line := range shape(reflect.TypeFor[Event](), "") {
		if name, _, _ := strings.Cut(line, " "); !fields[name] {
			t.Errorf("no golden record has %s", name)
		}
	}
	for _, word := range []string{
		ResultOK, ResultError, ResultDenied, ResultRejected, ResultPanic, ResultOrphaned, ResultIdle, CauseStart, CauseSize, CauseAge, CauseFailure, CauseMissing, CauseStop,
		TokenStale, TokenUnbound, TokenSeveral, string(EffectAllow), string(EffectDeny),
	} {
		if !words[word] {
			t.Errorf("no golden record says %q", word)
		}
	}
	want := []string{
		"admission ResponseComplete", "connection ConnectionClosed", "connection Summary", "log LogClose", "log LogOpen", "log LogPrune", "request Orphaned", "request Panic",
		"request RequestReceived", "request ResponseComplete", "request Summary",
	}
	var got []string
	for s := range stages {
		got = append(got, s)
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// present notes the places of all fields of a document. What params hold is the request's.
func present(v any, path string, into map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			place := strings.TrimPrefix(path+"."+name, ".")
			into[place] = true
			if place != "what.params" {
				present(inner, place, into)
			}
		}
	case []any:
		for _, inner := range v {
			present(inner, path, into)
		}
	}
}
