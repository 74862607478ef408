package policy

import (
	"encoding/binary"
	"math/bits"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
)

// colliding returns n texts of one hash. xxHash takes a text of 64 bytes as two blocks of four words, each word into a state of its own by steps that
// can be taken back: for any first block there is a second that leads to the same states.
func colliding(n int) []string {
	const prime1, prime2 uint64 = 11400714785074694791, 14029467366897019727
	step := func(state, word uint64) uint64 { return bits.RotateLeft64(state+word*prime2, 31) * prime1 }
	inverse := uint64(1) // of prime2; each round doubles the bits that are right
	for range 6 {
		inverse *= 2 - prime2*inverse
	}
	start := [4]uint64{prime2, prime2, 0, 0}
	start[0] += prime1 // as wrapping sums, which constants do not take
	start[3] -= prime1
	out := make([]string, n)
	for i := range out {
		var text [64]byte
		for lane, state := range start {
			first := uint64(i)<<8 | uint64(lane) //nolint:gosec // small
			binary.LittleEndian.PutUint64(text[8*lane:], first)
			binary.LittleEndian.PutUint64(text[32+8*lane:], (0-step(state, first))*inverse) // to the state of zero
		}
		out[i] = string(text[:])
	}
	return out
}

func TestKeysThatCollideAreRefusedBeforeAnyPolicyCollectsThem(t *testing.T) {
	e := activated(t, deciding(`{"allowed": count(object.keys(input.labels)) > 1, "findings": []}`), patient)
	of := func(keys []string) ast.Value {
		labels := map[string]any{}
		for _, k := range keys {
			labels[k] = ""
		}
		return value(t, map[string]any{"labels": labels})
	}
	texts := colliding(20000)
	if a, b := ast.String(texts[0]).Hash(), ast.String(texts[19999]).Hash(); a != b {
		t.Fatal("OPA has another hash of texts: what collides by that?")
	}
	if d, err := e.Decide(t.Context(), of(texts)); reasonOf(err) != ReasonInputSize || d.Allowed {
		t.Errorf("%+v, %v", d, err)
	}
	if d, err := e.Decide(t.Context(), of(texts[:maxEqualHashes])); err != nil || !d.Allowed {
		t.Errorf("few that collide: %+v, %v", d, err)
	}
	plain := make([]string, 20000)
	for i := range plain {
		plain[i] = texts[i][:63]
	}
	if d, err := e.Decide(t.Context(), of(plain)); err != nil || !d.Allowed {
		t.Errorf("keys that do not collide: %+v, %v", d, err)
	}
}
