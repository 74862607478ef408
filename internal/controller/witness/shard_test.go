package witness

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/internal/audit/evidence"
)

func compressed(t testing.TB, text []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// inShard returns names of logs that share the ConfigMap of the first of them.
func inShard(count int) (origins []string) {
	for i := 0; len(origins) < count; i++ {
		if origin := evidence.Origin(fmt.Sprintf("win-%d", i)); shardOf(origin) == shardOf(evidence.Origin("win-0")) {
			origins = append(origins, origin)
		}
	}
	return origins
}

func TestLogsAreSpreadOverAllShards(t *testing.T) {
	counts := map[string]int{}
	for i := range 4000 {
		counts[ShardName(evidence.Origin(fmt.Sprintf("win-%d", i)))]++
	}
	for _, name := range ShardNames() {
		if counts[name] < 400 || counts[name] > 600 {
			t.Errorf("%s has %d of 4,000 logs", name, counts[name])
		}
	}
	if len(counts) != shards {
		t.Errorf("%v", counts)
	}
}

func TestAShardHoldsWhatWasPutThere(t *testing.T) {
	lines := content{}
	for i, origin := range append(inShard(20), "example.com/größe & <more> \u2028") {
		l, err := newLine(origin, own{checkpoint: []byte{byte(i)}, isShared: true}, fmt.Appendf(nil, "%s\n%d\n", origin, i))
		if err != nil {
			t.Fatal(err)
		}
		lines[origin] = l
	}
	text, err := encodeLines(lines)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodeLines(text)
	if diff := cmp.Diff(lines, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := newLine("x", own{}, []byte("\xff")); !errors.Is(err, errNoText) {
		t.Errorf("it would not be read again: %v", err)
	}
}

func TestAShardOfAnyTextIsBounded(t *testing.T) {
	bomb := compressed(t, bytes.Repeat([]byte("\n"), maxText+1))
	if _, err := decodeLines(bomb); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("%v", err)
	}
}

// filled makes the shard of a log, with that and others whose lines take so many bytes.
func filled(t *testing.T, server *api, size int, known string) {
	t.Helper()
	first := own{checkpoint: []byte("first"), isShared: true}
	lines, total := content{}, 0
	for _, origin := range inShard(size/3000 + 2) {
		noise := make([]byte, 3000)
		if origin == known {
			noise = noise[:1]
		}
		if _, err := rand.Read(noise); err != nil {
			t.Fatal(err)
		}
		l, err := newLine(origin, first, []byte(hex.EncodeToString(noise)))
		if err != nil {
			t.Fatal(err)
		}
		lines[origin] = l
		if total += len(noise); total > size { // compressed, digits of noise take no less than the noise
			break
		}
	}
	text, err := encodeLines(lines)
	if err != nil {
		t.Fatal(err)
	}
	server.put(ShardName(known), nil, map[string][]byte{keyLines: text})
	for origin := range lines {
		if server.get(ConfigMapName(origin)).Name != "" {
			continue
		}
		if err := (own{}).write(t.Context(), server.memory().store, origin, Entry{Checkpoint: first.checkpoint}); err != nil {
			t.Fatal(err)
		}
	}
}

func FuzzShard(f *testing.F) {
	l, err := newLine("pipeguard.dev/audit/win-1", own{}, []byte("x\n1\ny\n"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(l.encode(), "pipeguard.dev/audit/win-1", []byte("x"))
	f.Add([]byte(`{"origin":"a","records":1,"cosignedAt":"","after":"","checkpoint":"b"}`+"\n"), "\u2028<", []byte("\xff"))
	f.Fuzz(func(t *testing.T, text []byte, origin string, checkpoint []byte) {
		if lines, err := decodeLines(compressed(t, text)); err == nil {
			again, err := encodeLines(lines)
			if err != nil {
				t.Fatal(err)
			}
			if same, err := decodeLines(again); err != nil || !cmp.Equal(lines, same) {
				t.Fatalf("%q is read as %v, and then as %v: %v", text, lines, same, err)
			}
		}
		l, err := newLine(origin, own{}, checkpoint)
		if err != nil || origin == "" || len(checkpoint) == 0 {
			return
		}
		if lines, err := decodeLines(compressed(t, l.encode())); err != nil || lines[origin] != l {
			t.Fatalf("%+v would make the shard unreadable: %v", l, err)
		}
	})
}
