package evidence

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"
)

const origin = OriginPrefix + "node-1"

// madeLog writes a log as the writer of segments does, and its evidence.
type madeLog struct {
	tb    testing.TB
	dir   string
	key   *Key
	log   *Log
	seq   uint64
	prev  tlog.Hash
	file  string // of the segment that is open
	bytes int64  // in it
	clock time.Time
}

// IsTried samples what would take minutes at every place: one of so many places, all of them if PIPEGUARD_EXHAUSTIVE is set, and fewer with -short.
func IsTried(place, every int) bool {
	switch {
	case os.Getenv("PIPEGUARD_EXHAUSTIVE") != "":
		every = 1
	case testing.Short():
		every *= 7
	}
	return place%every == 0
}

func newKey(tb testing.TB, name string) *Key {
	tb.Helper()
	k, err := NewKey(name)
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

func keysOf(tb testing.TB, lines ...string) Keys {
	tb.Helper()
	k, err := ParseKeys(strings.Join(lines, "\n"))
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

func newLog(tb testing.TB, o Options) *madeLog {
	tb.Helper()
	m := &madeLog{tb: tb, dir: filepath.Join(tb.TempDir(), "log"), key: newKey(tb, origin), clock: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	m.open(o)
	tb.Cleanup(func() { _ = m.log.Close(context.Background()) }) // an open file cannot be removed everywhere
	return m
}

// open begins to make evidence of what is there.
func (m *madeLog) open(o Options) {
	m.tb.Helper()
	o.Dir = m.dir
	if o.Keys == nil {
		o.Keys = []*Key{m.key}
	}
	if o.Now == nil {
		o.Now = func() time.Time { return m.clock }
	}
	log, err := Open(context.Background(), o)
	if err != nil {
		m.tb.Fatal(err)
	}
	m.log = log
}

func (m *madeLog) line(kind, stage, rest string) []byte {
	return fmt.Appendf(nil, `{"v":1,"seq":%d,"type":"%s","stage":"%s","time":"2026-11-21T12:00:00Z","session":"S","id":"r%d"%s,"prev":"%s"}`, m.seq+1, kind, stage, m.seq+1, rest, m.prev)
}

// write appends a raw record to the open segment.
func (m *madeLog) write(line []byte) {
	m.raw(append(line, '\n'))
	m.seq++
	m.prev = Leaf(line)
	m.bytes += int64(len(line)) + 1
	m.log.Append(m.prev)
}

// raw appends bytes that are no record.
func (m *madeLog) raw(text []byte) {
	m.tb.Helper()
	f, err := os.OpenFile(m.file, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		m.tb.Fatal(err)
	}
	if _, err := f.Write(text); err != nil {
		m.tb.Fatal(err)
	}
	if err := f.Close(); err != nil {
		m.tb.Fatal(err)
	}
}

// begin opens a segment; torn is what stands behind the records of the one before, void are segments given up.
func (m *madeLog) begin(torn int64, void ...string) {
	rest := ""
	if m.file != "" {
		rest = fmt.Sprintf(`"previous_session":"S","previous_seq":%d,"previous_segment":"%s","previous_bytes":%d,"torn_bytes":%d,`, m.seq, filepath.Base(m.file), m.bytes, torn)
	}
	if torn > 0 {
		rest += fmt.Sprintf(`"previous_torn_hash":"%x",`, sha256.Sum256(m.read(m.file)[m.bytes:]))
	}
	var held []string
	for _, name := range void {
		text := m.read(filepath.Join(m.dir, name))
		held = append(held, fmt.Sprintf("%d %x", len(text), sha256.Sum256(text)))
	}
	if len(void) > 0 {
		rest += fmt.Sprintf(`"void":["%s"],"void_held":["%s"],`, strings.Join(void, `","`), strings.Join(held, `","`))
	}
	m.file, m.bytes = filepath.Join(m.dir, m.name()), 0
	m.write(m.line("log", "LogOpen", `,"log":{`+rest+`"cause":"size"}`))
}

func (m *madeLog) read(path string) []byte {
	m.tb.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		m.tb.Fatal(err)
	}
	return text
}

var names int

func (m *madeLog) name() string {
	names++
	return fmt.Sprintf("audit-%020d-%08x-0000-4000-8000-000000000000.jsonl", m.seq+1, names)
}

func (m *madeLog) records(n int) {
	for range n {
		m.write(m.line("request", "ResponseComplete", `,"what":{"method":"Mkdir"}`))
	}
}

// end closes the segment in order.
func (m *madeLog) end() { m.write(m.line("log", "LogClose", "")) }

func (m *madeLog) checkpoint() {
	m.tb.Helper()
	if err := m.log.Checkpoint(context.Background()); err != nil {
		m.tb.Fatal(err)
	}
}

func (m *madeLog) close() {
	m.tb.Helper()
	if err := m.log.Close(context.Background()); err != nil {
		m.tb.Fatal(err)
	}
}

// sample is a log of three segments with a checkpoint after every few records, closed.
func sample(tb testing.TB) *madeLog {
	m := newLog(tb, Options{})
	for range 3 {
		m.begin(0)
		m.records(2)
		m.checkpoint()
		m.clock = m.clock.Add(time.Second)
		m.records(1)
		m.end()
	}
	m.close()
	return m
}

// small is a log of two segments and two checkpoints: little enough to try every bit of.
func small(tb testing.TB) *madeLog {
	m := newLog(tb, Options{})
	m.begin(0)
	m.records(1)
	m.end()
	m.checkpoint()
	m.begin(0)
	m.end()
	m.close()
	return m
}

// outside writes the newest checkpoint of a log to a file elsewhere.
func (m *madeLog) outside() string {
	m.tb.Helper()
	text, err := os.ReadFile(filepath.Join(m.dir, CheckpointFile))
	if err != nil {
		m.tb.Fatal(err)
	}
	var last []byte
	for n, err := range Notes(strings.NewReader(string(text))) {
		if err != nil {
			m.tb.Fatal(err)
		}
		last = n.Raw
	}
	head, err := Inspect(last)
	if err != nil {
		m.tb.Fatal(err)
	}
	if last, err = sign(head, m.clock.Add(time.Hour), m.key); err != nil { // another one of the same: what lies beside the log may be a copy of its own
		m.tb.Fatal(err)
	}
	file := filepath.Join(m.tb.TempDir(), "outside")
	if err := os.WriteFile(file, last, 0o600); err != nil {
		m.tb.Fatal(err)
	}
	return file
}

func (m *madeLog) keys() Keys { return keysOf(m.tb, m.key.LogKey()) }

func verify(tb testing.TB, o VerifyOptions) Report {
	tb.Helper()
	r, err := Verify(context.Background(), o)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// files returns what is in a directory by name.
func files(tb testing.TB, dir string) map[string][]byte {
	tb.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		tb.Fatal(err)
	}
	out := map[string][]byte{}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			tb.Fatal(err)
		}
		out[e.Name()] = text
	}
	return out
}
