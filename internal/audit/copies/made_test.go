package copies

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// event is a record of a call, changed by edit.
func event(edit ...func(*audit.Event)) audit.Event {
	e := audit.Event{
		V: audit.Version, Seq: 7, Type: audit.TypeRequest, Stage: audit.StageResponseComplete, Time: time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC),
		Session: "S", ID: "RW7UZ275BXWT453VSXCFNR6NIK", IntentSeq: 6,
		Who: &audit.Who{
			Assurance: "pod", Process: &audit.WhoProcess{PID: 4711, Exe: `C:\driver\node.exe`}, User: &audit.WhoUser{SID: "S-1-5-18"},
			Pod: &audit.WhoPod{Namespace: "kube-system", Name: "driver-1"},
		},
		What: &audit.What{
			Pipe: "csi-proxy-filesystem-v1", Group: "filesystem", Version: "v1", Method: "Mkdir", FullMethod: "/v1.Filesystem/Mkdir", Verb: "write",
			Params: []byte(`{"path":"C:\\var\\lib"}`), Targets: []audit.Target{{Kind: "path", Value: `C:\var\lib`}},
		},
		Decision: &audit.Decision{Effect: audit.EffectAllow, Reason: "allowed by rule driver", Rule: "driver", Mode: "Enforce"},
		Outcome:  &audit.Outcome{Result: audit.ResultOK, Code: "OK", LatencyUS: 1234},
		Corr:     &audit.Corr{Conn: "C"}, Where: &audit.Where{Node: "node-1"},
	}
	for _, f := range edit {
		f(&e)
	}
	return e
}

// line is a record as the log gives it: with its newline.
func line(t testing.TB, edit ...func(*audit.Event)) []byte {
	t.Helper()
	raw, err := audit.Encode(nil, event(edit...))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func denied(e *audit.Event) {
	e.Decision = &audit.Decision{Effect: audit.EffectDeny, Reason: "no rule", Mode: "Enforce"}
	e.Outcome = &audit.Outcome{Result: audit.ResultDenied, Code: "PermissionDenied"}
}

func numbered(seq uint64) func(*audit.Event) { return func(e *audit.Event) { e.Seq = seq } }

// place is one whose answers a test gives.
type place struct {
	name string
	send func(ctx context.Context, records []Record) error

	mu    sync.Mutex // guards taken
	taken []Record
}

func (p *place) Name() string { return p.name }

func (p *place) Send(ctx context.Context, records []Record) error {
	if p.send != nil {
		if err := p.send(ctx, records); err != nil {
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken = append(p.taken, records...)
	return nil
}

func (p *place) lines() (all []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.taken {
		all = append(all, string(r.Line))
	}
	return all
}

// notary is a destination that takes checkpoints.
type notary struct {
	*place
	every time.Duration
}

func (n *notary) CheckpointEvery() time.Duration { return n.every }

// troubles are what was told by OnLoss.
type troubles struct {
	mu  sync.Mutex // guards all
	all []error
}

func (t *troubles) add(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = append(t.all, err)
}

func (t *troubles) texts() (out []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, err := range t.all {
		out = append(out, err.Error())
	}
	return out
}

func mustNew(t testing.TB, o Options) *Copies {
	t.Helper()
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func mustClose(t testing.TB, c *Copies) {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	if err := c.Close(ctx); err != nil {
		t.Error(err)
	}
}

// raw is a line of which nothing matters but its length.
func raw(n int) []byte { return append(bytes.Repeat([]byte("x"), n), '\n') }
