package witnesstest

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

// Node has an audit log.
type Node struct {
	Dir string
	Key *evidence.Key

	ahead  atomic.Int64 // of the node's clock, a time.Duration
	tb     testing.TB
	writer *segment.Writer
	tree   *evidence.Log
	copies chan evidence.Copy
}

var _ evidence.Sink = (*Node)(nil)

// NewNode makes the log of a node and opens it.
func NewNode(tb testing.TB, name string) *Node {
	tb.Helper()
	n := &Node{tb: tb, Dir: filepath.Join(tb.TempDir(), "log"), Key: NewKey(tb, evidence.Origin(name))}
	n.Open()
	tb.Cleanup(n.Close)
	return n
}

// NewKey makes a key.
func NewKey(tb testing.TB, name string) *evidence.Key {
	tb.Helper()
	key, err := evidence.NewKey(name)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

// Origin is the log's.
func (n *Node) Origin() string { return n.Key.Name() }

// Open goes on with the log that is in the directory.
func (n *Node) Open() {
	n.tb.Helper()
	n.copies = make(chan evidence.Copy, 1000)
	last, err := evidence.LastSigned(n.Dir, nil, nil)
	if err != nil {
		n.tb.Fatal(err)
	}
	n.writer, err = segment.Open(context.Background(), n.Dir, segment.Options{
		NoSync: true, Covered: last.Size, Admitted: 1,
		Evidence: func(*segment.Found) (_ segment.Evidence, err error) {
			n.tree, err = evidence.Open(context.Background(), evidence.Options{
				Dir: n.Dir, Keys: []*evidence.Key{n.Key}, Sinks: []evidence.Sink{n}, Now: func() time.Time { return time.Now().Add(time.Duration(n.ahead.Load())) },
			})
			return n.tree, err
		},
	})
	if err != nil {
		n.tb.Fatal(err)
	}
}

// Name implements evidence.Sink.
func (n *Node) Name() string { return "test" }

// Send implements evidence.Sink.
func (n *Node) Send(_ context.Context, c evidence.Copy) error {
	n.copies <- c
	return nil
}

// Grow adds records and returns the checkpoint behind them.
func (n *Node) Grow(records int) evidence.Copy {
	n.tb.Helper()
	for range records {
		if _, err := n.writer.Append(context.Background(), &audit.Event{
			Type: audit.TypeConnection, Stage: audit.StageConnectionClosed, ID: "x", Outcome: &audit.Outcome{Result: audit.ResultIdle},
		}); err != nil {
			n.tb.Fatal(err)
		}
	}
	if err := n.tree.Checkpoint(context.Background()); err != nil {
		n.tb.Fatal(err)
	}
	size, _, err := n.tree.Root()
	if err != nil {
		n.tb.Fatal(err)
	}
	for {
		if c := <-n.copies; c.Size >= size { // the writer makes checkpoints of its own, too
			return c
		}
	}
}

// Idle lets a minute pass on the node and returns the checkpoint of the same records.
func (n *Node) Idle() evidence.Copy {
	n.tb.Helper()
	n.ahead.Add(int64(time.Minute))
	now := time.Now().Add(time.Duration(n.ahead.Load())).Truncate(time.Second)
	keys, err := evidence.ParseKeys(n.Key.LogKey())
	if err != nil {
		n.tb.Fatal(err)
	}
	for {
		sent := n.Grow(0)
		if c, err := keys.Open(sent.Raw); err != nil || !c.SignedAt.Before(now) { // not one from before
			return sent
		}
	}
}

// Ahead sets the node's clock so far before the true time.
func (n *Node) Ahead(by time.Duration) { n.ahead.Store(int64(by)) }

// Close ends the log in order. It may be called again.
func (n *Node) Close() {
	n.tb.Helper()
	if n.writer == nil {
		return
	}
	if err := n.writer.Close(); err != nil {
		n.tb.Error(err)
	}
	if err := n.tree.Close(context.Background()); err != nil {
		n.tb.Error(err)
	}
	n.writer = nil
}

// Files are what is in the directory.
func (n *Node) Files() map[string][]byte {
	n.tb.Helper()
	out := map[string][]byte{}
	entries, err := os.ReadDir(n.Dir)
	if err != nil {
		n.tb.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "audit-") && e.Name() != evidence.CheckpointFile {
			continue
		}
		text, err := os.ReadFile(filepath.Join(n.Dir, e.Name()))
		if err != nil {
			n.tb.Fatal(err)
		}
		out[e.Name()] = text
	}
	return out
}

// RollBack closes the log, puts an older state in its place, and goes on with that a minute later.
func (n *Node) RollBack(to map[string][]byte) {
	n.tb.Helper()
	n.Close()
	for name := range n.Files() {
		if err := os.Remove(filepath.Join(n.Dir, name)); err != nil {
			n.tb.Fatal(err)
		}
	}
	for name, text := range to {
		if err := os.WriteFile(filepath.Join(n.Dir, name), text, 0o600); err != nil {
			n.tb.Fatal(err)
		}
	}
	n.ahead.Add(int64(time.Minute))
	n.Open()
}

// Client asks a witness as a node does.
func Client(tb testing.TB, url string, witness *evidence.Key, through *http.Client) *evidence.Client {
	tb.Helper()
	c, err := evidence.NewClient(evidence.ClientOptions{URL: url, Key: witness.WitnessKey(), HTTP: through, Interval: time.Nanosecond})
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// Request is the body by which a checkpoint is given to a witness that cosigned another size before.
func Request(tb testing.TB, old uint64, c evidence.Copy) string {
	tb.Helper()
	proof, err := c.Prove(context.Background(), old)
	if err != nil {
		tb.Fatal(err)
	}
	var out strings.Builder
	out.WriteString("old " + strconv.FormatUint(old, 10))
	for _, h := range proof {
		out.WriteString("\n" + h.String())
	}
	return out.String() + "\n\n" + string(c.Raw)
}
