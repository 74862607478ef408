package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

// compiled is the schema that is published.
func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	file, err := os.Open(filepath.Join(root, filepath.FromSlash(JSONFile)))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	doc, err := jsonschema.UnmarshalJSON(file)
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource(ID, doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile(ID)
	if err != nil {
		t.Fatal(err)
	}
	if schema.DraftVersion != 2020 {
		t.Errorf("draft %d", schema.DraftVersion)
	}
	return schema
}

func decode(t *testing.T, line []byte) map[string]any {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(line))
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	m, ok := doc.(map[string]any)
	if !ok {
		t.Fatalf("%s is no object", line)
	}
	return m
}

// lines calls each for the lines of the files that a pattern fits, and fails if there are fewer than least.
func lines(t *testing.T, pattern string, least int, each func(name string, line []byte)) {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		in := bufio.NewScanner(bytes.NewReader(text))
		in.Buffer(nil, 2*audit.MaxRecord)
		for in.Scan() {
			count++
			each(filepath.Base(name), in.Bytes())
		}
		if err := in.Err(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if count < least {
		t.Errorf("%s: %d lines", pattern, count)
	}
}

func TestRecordsThatAreThereAreValid(t *testing.T) {
	schema := compiled(t)
	check := func(name string, line []byte) {
		if strings.HasPrefix(name, "unguarded_pipe") { // of the diagnostic log
			return
		}
		if err := schema.Validate(decode(t, line)); err != nil {
			t.Errorf("%s: %s: %v", name, line, err)
		}
	}
	lines(t, fmt.Sprintf("../../internal/audit/testdata/v%d/*.jsonl", audit.Version), 30, check)
	lines(t, root+"/deploy/siem/sigma/samples/*.jsonl", 30, check)
}

func TestRecordsOfTheWriterAreValid(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "audit")
	r := rand.New(rand.NewPCG(6, 7))
	for range 2 {
		w, err := segment.Open(t.Context(), dir, segment.Options{SegmentBytes: 4 * audit.MaxRecord, KeepBytes: 16 * audit.MaxRecord, Where: &audit.Where{Node: "win-1"}})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 100 {
			e := event(r)
			e.Type, e.Stage, e.ID, e.IntentSeq, e.Log = audit.TypeRequest, audit.StageResponseComplete, fmt.Sprint("end-", i), 0, nil
			if i == 50 {
				e.Stage = audit.StageRequestReceived // nobody ends it
			}
			if _, err := w.Append(context.Background(), &e); err != nil && !errors.Is(err, segment.ErrRefusals) {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	schema, stages := compiled(t), map[string]int{}
	lines(t, filepath.Join(dir, "audit-*.jsonl"), 20, func(name string, line []byte) {
		doc := decode(t, line)
		stages[fmt.Sprint(doc["stage"])]++
		if err := schema.Validate(doc); err != nil {
			t.Errorf("%s: %s: %v", name, line, err)
		}
	})
	for _, stage := range []audit.Stage{audit.StageLogOpen, audit.StageLogClose, audit.StageLogPrune} {
		if stages[string(stage)] == 0 {
			t.Errorf("no %s among %v", stage, stages)
		}
	}
}

func TestWhateverIsWrittenIsValid(t *testing.T) {
	schema, cut := compiled(t), 0
	for seed := range uint64(2000) {
		e := event(rand.New(rand.NewPCG(seed, 0)))
		line, err := audit.Encode(nil, e)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if bytes.Contains(line, []byte("bytes cut]")) {
			cut++
		}
		if err := schema.Validate(decode(t, line)); err != nil {
			t.Errorf("seed %d: %s: %v", seed, line, err)
		}
	}
	if cut < 100 {
		t.Errorf("only %d were long", cut)
	}
}
