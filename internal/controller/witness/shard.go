package witness

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/controller/configmaps"
)

const (
	// shards is how many ConfigMaps hold the checkpoints of all logs. A log's is that of the first digit of its hash, modulo this number.
	shards = 8
	// keyLines holds the lines of a shard, compressed by gzip.
	keyLines = "checkpoints.jsonl.gz"
)

// Bounds of a shard, in bytes. The API server takes ConfigMaps up to 1 MiB, and a line of a node has some 700, of which 300 are left by compression.
const (
	// maxLine bounds what one log may take from the others.
	maxLine = 8 << 10
	// usualLine is more than the line of a node has. Longer ones are not stored where they would make a shard too large.
	usualLine = 1 << 10
	// roomForNew is up to where logs get into a shard. What is above belongs to those that are in it, whose lines may grow.
	roomForNew = 768 << 10
	maxShard   = 960 << 10
	// maxText bounds what a shard is decompressed to.
	maxText = 16 << 20
)

var (
	errTooLong = errors.New("too much to remember of one log")
	errNoText  = errors.New("not UTF-8")
	errFull    = errors.New("it is full; delete the ConfigMaps of logs that no longer exist")
)

// ShardName is the name of the ConfigMap that a log shares.
func ShardName(origin string) string { return shardName(shardOf(origin)) }

// ShardNames are the names of all ConfigMaps that logs share.
func ShardNames() (names []string) {
	for i := range shards {
		names = append(names, shardName(i))
	}
	return names
}

func shardName(i int) string { return namePrefix + "logs-" + strconv.Itoa(i) }

func shardOf(origin string) int {
	digit, _ := strconv.ParseUint(hash(origin)[:1], 16, 8) // hex has no others
	return int(digit) % shards
}

// line is the checkpoint of one log in a shard; the zero line if there is none.
type line struct {
	Origin string `json:"origin"`
	// Records and CosignedAt are for people to read; the witness does not trust them.
	Records    uint64 `json:"records"`
	CosignedAt string `json:"cosignedAt"`
	// After is the digest of the checkpoint in the log's own ConfigMap. Beside any other, the line does not count.
	After string `json:"after"`
	// Checkpoint is the signed note that was cosigned last, as verification takes it.
	Checkpoint string `json:"checkpoint"`
}

// newLine makes the line of a checkpoint that comes after the one in a log's own ConfigMap. A checkpoint that no shard takes is refused from the
// first one on.
func newLine(origin string, after own, checkpoint []byte) (line, error) {
	l := line{Origin: origin, CosignedAt: time.Now().UTC().Format(time.RFC3339), After: after.digest(), Checkpoint: string(checkpoint)}
	if head, err := evidence.Inspect(checkpoint); err == nil {
		l.Records = head.Size
	}
	if !utf8.ValidString(origin) || !utf8.Valid(checkpoint) { // as JSON it would be another text
		return line{}, errNoText
	}
	if len(origin) > maxOrigin || len(l.encode()) > maxLine {
		return line{}, fmt.Errorf("log %q: %w", origin[:min(len(origin), maxOrigin)], errTooLong)
	}
	return l, nil
}

// follows says whether the line counts beside a log's own ConfigMap.
func (l line) follows(o own) bool { return o.isShared && l.After == o.digest() }

func (l line) encode() []byte {
	text, _ := json.Marshal(l) // strings and a number have no errors
	return append(text, '\n')
}

// content is what a shard holds, by origin.
type content map[string]line

// shard is a ConfigMap with the checkpoints of some logs.
type shard struct {
	object *corev1.ConfigMap // as it was read, nil if there is none
	lines  content
}

func readShard(ctx context.Context, store configmaps.Store, name string) (shard, error) {
	o, err := store.Read(ctx, name)
	if err != nil || o == nil {
		return shard{lines: content{}}, err
	}
	lines, err := decodeLines(o.BinaryData[keyLines])
	if err != nil {
		return shard{}, fmt.Errorf("ConfigMap %s: %w: %w", name, ErrMemory, err)
	}
	return shard{o, lines}, nil
}

// write stores other lines in place of those that were read. It returns configmaps.ErrChanged if they have changed since.
func (s shard) write(ctx context.Context, store configmaps.Store, name string, compressed []byte) error {
	data := map[string][]byte{keyLines: compressed}
	if s.object == nil {
		return store.Write(ctx, name, "", &corev1.ConfigMap{BinaryData: data})
	}
	o := s.object.DeepCopy()
	o.Data, o.BinaryData = nil, data
	return store.Update(ctx, o)
}

// encodeLines returns the compressed text of a shard: one log a line, in the order of their names. The error is errFull if it could not be read.
func encodeLines(lines content) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	written := 0
	for _, l := range slices.SortedFunc(maps.Values(lines), func(a, b line) int { return cmp.Compare(a.Origin, b.Origin) }) {
		n, err := w.Write(l.encode())
		if err != nil {
			return nil, err
		}
		written += n
	}
	if written > maxText {
		return nil, errFull
	}
	err = w.Close()
	return out.Bytes(), err
}

// decodeLines reads what encodeLines returns, and refuses anything else: what cannot be read is no empty shard.
func decodeLines(compressed []byte) (content, error) {
	r, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(r, maxText+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxText {
		return nil, fmt.Errorf("more than %d bytes", maxText)
	}
	lines := content{}
	for one := range bytes.Lines(text) {
		decoder := json.NewDecoder(bytes.NewReader(one))
		decoder.DisallowUnknownFields()
		var l line
		if err := decoder.Decode(&l); err != nil {
			return nil, fmt.Errorf("line %d: %w", len(lines)+1, err)
		}
		if !bytes.Equal(l.encode(), one) || l.Origin == "" || l.Checkpoint == "" || len(one) > maxLine {
			return nil, fmt.Errorf("line %d is not as a witness writes it", len(lines)+1)
		}
		if _, isThere := lines[l.Origin]; isThere {
			return nil, fmt.Errorf("line %d: a second one of its log", len(lines)+1)
		}
		lines[l.Origin] = l
	}
	return lines, nil
}
