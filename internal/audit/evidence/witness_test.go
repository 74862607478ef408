package evidence

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"
)

// watched is a log with a witness, each in a place of its own.
type watched struct {
	*madeLog
	witness *Key
	store   stored
	server  *httptest.Server
	refused []RefusedReason
	sink    *taker
	known   func() Keys // of the log; its key's if nil
}

func newWatched(t *testing.T) *watched {
	t.Helper()
	w := &watched{witness: newKey(t, "example.com/witness"), store: stored{}, sink: &taker{make(chan Copy, 100)}}
	w.madeLog = newLog(t, Options{Sinks: []Sink{w.sink}})
	witness, err := NewWitness(WitnessOptions{
		Key: w.witness, Store: w.store, Now: func() time.Time { return w.clock }, OnRefused: func(r Refused) { w.refused = append(w.refused, r.Reason) },
		Keys: func(_ context.Context, name string) (Keys, error) {
			if name != origin {
				return Keys{}, nil
			}
			if w.known != nil {
				return w.known(), nil
			}
			return w.keys(), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.server = httptest.NewServer(http.StripPrefix("/witness", witness))
	t.Cleanup(w.server.Close)
	return w
}

// grown adds records and returns the checkpoint behind them.
func (w *watched) grown(n int) Copy {
	w.records(n)
	w.checkpoint()
	return <-w.sink.got
}

func (w *watched) client(t *testing.T) *Client {
	t.Helper()
	c, err := NewClient(ClientOptions{URL: w.server.URL + "/witness/", Key: w.witness.WitnessKey(), Interval: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// post asks by hand and returns status, content type and text.
func (w *watched) post(t *testing.T, body []byte) (int, string, string) {
	t.Helper()
	r, err := http.Post(w.server.URL+"/witness/add-checkpoint", "text/plain", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close() //nolint:errcheck // only read
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, r.Header.Get("Content-Type"), string(text)
}

func TestAWitnessCosignsALogThatGrows(t *testing.T) {
	w := newWatched(t)
	w.begin(0)
	client := w.client(t)
	for i := range 20 {
		if err := client.Send(t.Context(), w.grown(1+i%4)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.client(t).Send(t.Context(), w.grown(3)); err != nil { // one that knows nothing of what was before
		t.Fatal(err)
	}
	last := w.grown(0)
	if err := client.Send(t.Context(), last); err != nil { // another client was faster
		t.Fatal(err)
	}
	w.close()
	raw, _, err := w.store.Last(t.Context(), origin)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "from-witness")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	keys := keysOf(t, w.key.LogKey(), w.witness.WitnessKey())
	r := verify(t, VerifyOptions{Dir: w.dir, Keys: keys, Outside: []string{file}, RequireWitness: true})
	if r.Verdict != VerdictOK || r.Witnessed != last.Size || r.WitnessedAt.IsZero() {
		t.Errorf("got %+v, fault %v", r, r.Fault)
	}
	if len(w.refused) != 0 {
		t.Errorf("refused: %v", w.refused)
	}
}

func TestAWitnessFindsALogThatWasRolledBackOrForked(t *testing.T) {
	w := newWatched(t)
	w.begin(0)
	client := w.client(t)
	if err := client.Send(t.Context(), w.grown(3)); err != nil {
		t.Fatal(err)
	}
	before := files(t, w.dir)
	if err := client.Send(t.Context(), w.grown(5)); err != nil {
		t.Fatal(err)
	}
	w.close()
	<-w.sink.got
	seen, _, _ := w.store.Last(t.Context(), origin)

	rewrite(t, w.dir, before)
	back := &madeLog{tb: t, dir: w.dir, key: w.key, clock: w.clock, seq: 4, file: w.file}
	back.open(Options{Sinks: []Sink{w.sink}})
	back.checkpoint()
	rolled := <-w.sink.got
	for name, c := range map[string]*Client{"the same client": client, "a new client": w.client(t)} {
		if err := c.Send(t.Context(), rolled); !errors.Is(err, ErrWitnessAhead) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, line := range strings.Split(strings.TrimSpace(string(before[filepath.Base(w.file)])), "\n") {
		back.prev = Leaf([]byte(line))
	}
	for size := range 8 { // the log goes on otherwise than it did before
		back.write(back.line("request", "ResponseComplete", `,"what":{"method":"Rmdir"}`))
		back.checkpoint()
		c := <-w.sink.got
		want := ErrWitnessAhead
		if c.Size >= 9 {
			want = ErrWitnessRefuses
		}
		if err := w.client(t).Send(t.Context(), c); !errors.Is(err, want) {
			t.Errorf("forked, %d records (%d): %v, want %v", c.Size, size, err, want)
		}
	}
	back.close()
	now, _, _ := w.store.Last(t.Context(), origin)
	if !bytes.Equal(seen, now) {
		t.Error("the witness took one of them")
	}
	for _, reason := range []RefusedReason{RefusedBehind, RefusedFork, RefusedProof} {
		if !strings.Contains(fmt.Sprint(w.refused), string(reason)) {
			t.Errorf("%q was not told: %v", reason, w.refused)
		}
	}
}

func TestAWitnessAnswersAsTheProtocolSays(t *testing.T) {
	w := newWatched(t)
	w.begin(0)
	first := w.grown(3)
	if status, _, text := w.post(t, request{0, nil, first.Raw}.encode()); status != 200 || !strings.HasPrefix(text, "— example.com/witness ") || strings.Count(text, "\n") != 1 {
		t.Fatalf("%d %q", status, text)
	}
	next := w.grown(3)
	proof, err := next.Prove(t.Context(), first.Size)
	if err != nil {
		t.Fatal(err)
	}
	strange, err := sign(Head{"elsewhere", 3, first.Root}, w.clock, newKey(t, "elsewhere"))
	if err != nil {
		t.Fatal(err)
	}
	forged, err := sign(next.Head, w.clock, newKey(t, origin))
	if err != nil {
		t.Fatal(err)
	}
	fork, err := sign(Head{origin, first.Size, next.Root}, w.clock, w.key)
	if err != nil {
		t.Fatal(err)
	}
	small, err := sign(Head{origin, 1, next.Root}, w.clock, w.key)
	if err != nil {
		t.Fatal(err)
	}
	bent := append(tlog.TreeProof{}, proof...)
	bent[0][0] ^= 1
	good := string(request{first.Size, proof, next.Raw}.encode())
	for name, c := range map[string]struct {
		body   string
		status int
	}{
		"nothing":                        {"", 400},
		"no empty line":                  {"old 0\n", 400},
		"no old size":                    {strings.Replace(good, "old ", "new ", 1), 400},
		"an old size with a zero":        {strings.Replace(good, "old ", "old 0", 1), 400},
		"a negative old size":            {strings.Replace(good, "old ", "old -", 1), 400},
		"a proof that is none":           {strings.Replace(good, "\n", "\nx\n", 1), 400},
		"a proof too long":               {strings.Replace(good, "\n", "\n"+strings.Repeat(proof[0].String()+"\n", 64), 1), 400},
		"no checkpoint":                  {"old 0\n\nx\n", 400},
		"a checkpoint without signature": {"old 0\n\n" + next.text(), 400},
		"a body too long":                {good + strings.Repeat("x", maxRequest), 400},
		"an old size too large":          {string(request{first.Size, nil, small}.encode()), 400},
		"another log":                    {string(request{0, nil, strange}.encode()), 404},
		"another key of the same name":   {string(request{first.Size, proof, forged}.encode()), 403},
		"a signature that is bad":        {strings.Replace(good, next.Root.String(), first.Root.String(), 1), 403},
		"another old size":               {string(request{2, proof, next.Raw}.encode()), 409},
		"an old size of zero":            {string(request{0, nil, next.Raw}.encode()), 409},
		"a fork":                         {string(request{first.Size, nil, fork}.encode()), 409},
		"no proof":                       {string(request{first.Size, nil, next.Raw}.encode()), 422},
		"a bent proof":                   {string(request{first.Size, bent, next.Raw}.encode()), 422},
		"a proof of nothing":             {string(request{first.Size, proof, first.Raw}.encode()), 422},
	} {
		t.Run(name, func(t *testing.T) {
			status, kind, text := w.post(t, []byte(c.body))
			if status != c.status || strings.Contains(text, "—") {
				t.Errorf("%d %q, want %d", status, text, c.status)
			}
			if status == 409 && (kind != "text/x.tlog.size" || text != fmt.Sprintf("%d\n", first.Size)) {
				t.Errorf("409 with %q %q", kind, text)
			}
		})
	}
	if r, err := http.Get(w.server.URL + "/witness/add-checkpoint"); err != nil || r.StatusCode != 405 {
		t.Errorf("GET: %v %v", r.StatusCode, err)
	}
	if status, _, text := w.post(t, []byte(good)); status != 200 {
		t.Errorf("after all that: %d %q", status, text)
	}
}

// racing is a store in which somebody else is faster a few times.
type racing struct {
	Store
	left int
}

func (s *racing) Swap(ctx context.Context, origin, version string, checkpoint []byte) error {
	if s.left--; s.left >= 0 {
		return ErrChanged
	}
	return s.Store.Swap(ctx, origin, version, checkpoint)
}

func TestAWitnessSignsNothingThatItCouldNotStore(t *testing.T) {
	w := newWatched(t)
	w.begin(0)
	c := w.grown(3)
	for left, want := range map[int]int{2: 200, 100: 503} {
		witness, err := NewWitness(WitnessOptions{
			Key: w.witness, Store: &racing{stored{}, left}, Now: func() time.Time { return w.clock },
			Keys: func(context.Context, string) (Keys, error) { return w.keys(), nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		out := httptest.NewRecorder()
		witness.ServeHTTP(out, httptest.NewRequest(http.MethodPost, AddCheckpointPath, bytes.NewReader(request{0, nil, c.Raw}.encode())))
		if out.Code != want || want != 200 && strings.Contains(out.Body.String(), "—") {
			t.Errorf("%d races: %d %q", left, out.Code, out.Body.String())
		}
	}
	if _, err := NewWitness(WitnessOptions{}); err == nil {
		t.Error("a witness of nothing")
	}
}
