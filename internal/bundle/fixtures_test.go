package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"sync/atomic"
	"testing"
	"time"

	opa "github.com/open-policy-agent/opa/v1/bundle"
)

var issued = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const life = 24 * time.Hour

// sample is a bundle of revision 7 for the pool windows.
func sample(change ...func(*Bundle)) Bundle {
	b := Bundle{
		Revision: 7, Audience: "windows", IssuedAt: issued, ExpiresAt: issued.Add(life), PolicyRevision: "sha256:00ff",
		Modules: map[string]string{"node.rego": "package pipeguard.node\n\ndecision := {\"allowed\": true, \"findings\": set()}\n"},
		ACL:     []byte(`{"schema": "x", "policies": [{"name": "<a> & b", "n": 12345678901234567890}]}`),
	}
	for _, c := range change {
		c(&b)
	}
	return b
}

func newTestKey(t testing.TB) *Key {
	t.Helper()
	k, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func pin(t testing.TB, keys ...*Key) Keys {
	t.Helper()
	var text []byte
	for _, k := range keys {
		text = append(text, k.PublicPEM()...)
	}
	out, err := ParseKeys(text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func build(t testing.TB, key *Key, change ...func(*Bundle)) []byte {
	t.Helper()
	raw, err := Build(sample(change...), key)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func revision(n uint64) func(*Bundle) { return func(b *Bundle) { b.Revision = n } }

// repack changes the files of an archive, signatures among them, and packs them again.
func repack(t testing.TB, raw []byte, change func(map[string][]byte)) []byte {
	t.Helper()
	files, err := unpack(raw)
	if err != nil {
		t.Fatal(err)
	}
	change(files)
	out, err := pack(files)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// resign packs files with a signature over what signs says.
func resign(t testing.TB, key *Key, files, signs map[string][]byte) []byte {
	t.Helper()
	token, err := sign(signs, key)
	if err != nil {
		t.Fatal(err)
	}
	return withToken(t, files, token)
}

func withToken(t testing.TB, files map[string][]byte, token ...string) []byte {
	t.Helper()
	text, err := encode(opa.SignaturesConfig{Signatures: token})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{signaturesFile: text}
	for name, content := range files {
		all[name] = content
	}
	raw, err := pack(all)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func filesOf(t testing.TB, b Bundle) map[string][]byte {
	t.Helper()
	files, err := b.files()
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// tarball is an archive of any entries.
func tarball(t testing.TB, entries ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	archive := tar.NewWriter(zip)
	for _, h := range entries {
		if err := archive.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write(make([]byte, h.Size)); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// node is what a Keeper decides for.
type node struct {
	dir     string
	key     *Key
	now     atomic.Pointer[time.Time]
	decides atomic.Uint64 // revision
	fail    error         // of Prepare
	minimum uint64
}

func newNode(t *testing.T) *node {
	n := &node{dir: t.TempDir(), key: newTestKey(t)}
	n.set(issued.Add(time.Hour))
	return n
}

func (n *node) set(now time.Time) { n.now.Store(&now) }

func (n *node) prepare(_ context.Context, b Bundle, _ Seal) (func(), error) {
	return func() { n.decides.Store(b.Revision) }, n.fail
}

func (n *node) options(t *testing.T) Options {
	return Options{
		Keys: pin(t, n.key), Audience: "windows", Dir: n.dir, Prepare: n.prepare, MinimumRevision: n.minimum,
		Now: func() time.Time { return *n.now.Load() },
	}
}

// start makes a Keeper, as a start of the process does.
func (n *node) start(t *testing.T) *Keeper {
	t.Helper()
	n.decides.Store(0)
	k, err := NewKeeper(t.Context(), n.options(t))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// offer expects a bundle to be taken, or refused for a reason.
func offer(t *testing.T, k *Keeper, raw []byte, want Reason) {
	t.Helper()
	_, err := k.Offer(t.Context(), raw)
	if got := ReasonOf(err); got != want || (err == nil) != (want == "") {
		t.Errorf("offer: %v, want reason %q", err, want)
	}
}
