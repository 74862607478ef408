package evidence

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"testing"
)

// Whoever has seen a checkpoint can send it again with more signatures. What the witness remembers of it must be something that it can read.
func TestSignaturesOfStrangersDoNotEndAWitnessesMemory(t *testing.T) {
	for name, c := range map[string]struct{ lines, length int }{
		"many":            {98, 1},
		"few, and longer": {9, 1305},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWatched(t)
			w.begin(0)
			first := w.grown(3)
			raw := bytes.Clone(first.Raw)
			for i := range c.lines {
				junk := append(binary.BigEndian.AppendUint32(nil, uint32(i+1)), bytes.Repeat([]byte("x"), c.length)...)
				raw = fmt.Appendf(raw, "— %s %s\n", origin, base64.StdEncoding.EncodeToString(junk))
			}
			if len(raw) > maxNote {
				t.Fatalf("%d bytes are refused for their length", len(raw))
			}
			if status, _, text := w.post(t, request{0, nil, raw}.encode()); status != 200 {
				t.Fatalf("%d %q", status, text)
			}
			if err := w.client(t).Send(t.Context(), w.grown(3)); err != nil {
				t.Errorf("the log itself: %v", err)
			}
		})
	}
}
