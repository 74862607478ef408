package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
	"github.com/pipeguard/pipeguard/test/audit/recorded"
)

// kept is a directory that the real writer keeps: two runs, of which the first one was killed within a line and left an operation open.
func kept(t *testing.T, first, second []audit.Event) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "log")
	run := func(events []audit.Event) {
		t.Helper()
		w, err := segment.Open(t.Context(), dir, segment.Options{NoSync: true, OnFault: func(err error) { t.Error(err) }})
		if err != nil {
			t.Fatal(err)
		}
		intents := map[string]uint64{}
		for _, e := range events {
			if e.IntentSeq != 0 {
				e.IntentSeq = intents[e.ID]
			}
			seq, err := w.Append(t.Context(), &e)
			if err != nil {
				t.Fatal(err)
			}
			intents[e.ID] = seq
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	run(first)
	name := segmentIn(t, dir)
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	whole := text[:bytes.LastIndexByte(text[:len(text)-1], '\n')+1] // without the closing
	if err := os.WriteFile(name, append(whole, `{"v":1,"seq":9`...), 0o600); err != nil {
		t.Fatal(err)
	}
	run(second)
	return dir
}

// segmentIn is the only segment of a directory.
func segmentIn(t *testing.T, dir string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "audit-*.jsonl"))
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	return names[0]
}

func TestEveryReaderTakesADirectoryOfSegments(t *testing.T) {
	dir := kept(t, []audit.Event{intent("a"), end("a", 1), intent("open")}, []audit.Event{denial("b"), recordedSymlink("call", nil)})
	rules := writeACL(t, aclFile)
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"check":         {[]string{"audit", "check", dir}, exitIncomplete, "(id \"call\") is an intent that nothing ends\n9 records in 2 sessions: 3 intents, 3 ends of requests"},
		"show":          {[]string{"audit", "show", dir}, exitYes, "orphan"},
		"show an id":    {[]string{"audit", "show", dir, "a"}, exitYes, "Intent, record 2"},
		"search":        {[]string{"audit", "search", dir, "--count"}, exitYes, "9\n"},
		"stats":         {[]string{"audit", "stats", dir, "--by", "type"}, exitYes, "request"},
		"tail":          {[]string{"audit", "tail", dir, "-n", "2"}, exitYes, "close"},
		"export":        {[]string{"audit", "export", dir, "--format", "csv"}, exitYes, "Orphaned"},
		"report":        {[]string{"audit", "report", dir, "-o", "-"}, exitYes, "the next start closed it"},
		"verify":        {[]string{"audit", "verify", dir}, exitIncomplete, "14 bytes that are no part of the log"},
		"acl explain":   {[]string{"acl", "explain", rules, "--from-audit", dir, "--id", "call"}, exitYes, "allowed by rule driver"},
		"acl check":     {[]string{"acl", "check", rules, "--from-audit", dir, "--id", "call"}, exitYes, "allowed by rule driver"},
		"no such call":  {[]string{"acl", "check", rules, "--from-audit", dir, "--id", "nobody"}, exitBadInput, "holds no request \"nobody\""},
		"no such eval":  {[]string{"policy", "eval", "--from-audit", dir, "--id", "nobody"}, exitBadInput, "holds no call \"nobody\""},
		"an empty one":  {[]string{"policy", "eval", "--from-audit", t.TempDir(), "--id", "call"}, exitBadInput, "holds no segments"},
		"policy eval":   {[]string{"policy", "eval", "--from-audit", kept(t, nil, events(t, recordedLog(t, &audit.Decision{Effect: audit.EffectAllow, Rule: "drivers", Policy: &audit.Policy{Name: "acl", Revision: "1"}}, nil))), "--id", "CALL1"}, exitNo, "recorded  allow by drivers"},
		"a single file": {[]string{"audit", "search", segmentIn(t, kept1(t)), "--count"}, exitYes, "3\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got := execute(t, "", c.args...)
			if got.code != c.code || !strings.Contains(got.out+got.errOut, c.want) {
				t.Errorf("exit code %d, want %d; %q is not in\n%s%s", got.code, c.code, c.want, got.out, got.errOut)
			}
		})
	}
}

// kept1 is a directory of one segment.
func kept1(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "log")
	w, err := segment.Open(t.Context(), dir, segment.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	e := denial("x")
	if _, err := w.Append(t.Context(), &e); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// events are the requests of a file.
func events(t *testing.T, file string) (all []audit.Event) {
	t.Helper()
	for e, err := range recorded.Events(file) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == audit.TypeRequest {
			all = append(all, e)
		}
	}
	return all
}

func TestALongReadingEndsWhenItIsAskedTo(t *testing.T) {
	dir := kept1(t)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	for _, args := range [][]string{
		{"search", dir}, {"stats", dir}, {"show", dir}, {"show", dir, "x"}, {"tail", dir}, {"check", dir}, {"hunt", dir}, {"export", dir, "--format", "csv"}, {"report", dir, "-o", "-"}, {"verify", dir},
	} {
		var out, errOut bytes.Buffer
		if code := run(ctx, append([]string{"audit"}, args...), streams{strings.NewReader(""), &out, &errOut}); code < exitBadInput || !strings.Contains(errOut.String(), "canceled") {
			t.Errorf("%q: exit code %d, %q", args, code, errOut.String())
		}
	}
}
