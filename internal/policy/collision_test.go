package policy

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/bits"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
)

// colliding returns n texts of one hash that can be read, at most 28,561. xxHash takes a text of 64 bytes as two blocks of four words, each word into
// a state of its own by steps that can be taken back: for any first word there is a second that leads to the same state. Some of those can be read.
func colliding(n int) []string {
	const prime1, prime2 uint64 = 11400714785074694791, 14029467366897019727
	const choices = 13
	step := func(state, word uint64) uint64 { return bits.RotateLeft64(state+word*prime2, 31) * prime1 }
	inverse := uint64(1) // of prime2; each round doubles the bits that are right
	for range 6 {
		inverse *= 2 - prime2*inverse
	}
	start := [4]uint64{prime2, prime2, 0, 0}
	start[0] += prime1 // as wrapping sums, which constants do not take
	start[3] -= prime1
	var lanes [4][][2][]byte
	for lane, state := range start {
		for i := 0; len(lanes[lane]) < choices; i++ {
			first := fmt.Appendf(nil, "%08d", i)
			second := binary.LittleEndian.AppendUint64(nil, (0-step(state, binary.LittleEndian.Uint64(first)))*inverse) // to the state of zero
			if !bytes.ContainsFunc(second, func(r rune) bool { return r < ' ' || r > '~' }) {
				lanes[lane] = append(lanes[lane], [2][]byte{first, second})
			}
		}
	}
	out := make([]string, n)
	for i := range out {
		var text [64]byte
		for lane, rest := 0, i; lane < len(lanes); lane, rest = lane+1, rest/choices {
			words := lanes[lane][rest%choices]
			copy(text[8*lane:], words[0])
			copy(text[32+8*lane:], words[1])
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

// A list of texts of the input may collide as its keys do.
func TestAListThatCollidesIsNotCollectedByAFunction(t *testing.T) {
	few, many := colliding(1000), colliding(5000)
	pointers := make([]string, len(many))
	for i, text := range many {
		pointers[i] = "/x/" + strings.ReplaceAll(strings.ReplaceAll(text, "~", "~0"), "/", "~1")
	}
	members := func(names []string) string {
		object := map[string]int{}
		for _, name := range names {
			object[name] = 1
		}
		text, err := json.Marshal([]any{object})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, call := range []string{
		`object.filter({"a": 1}, input.texts)`, `object.remove({"a": 1}, input.texts)`,
		`json.filter({"a": 1}, input.texts)`, `json.remove({"a": 1}, input.texts)`,
		`json.filter({"a": 1}, input.pointers)`, `{1 | json.unmarshal(input.json)}`, `json.filter({"a": 1}, [input.texts])`,
	} {
		e := activated(t, deciding(`{"allowed": count(`+call+`) < 2, "findings": []}`), patient)
		d, err := e.Decide(t.Context(), value(t, map[string]any{"texts": many, "pointers": pointers, "json": members(many)}))
		if reasonOf(err) != ReasonTimeout || !strings.Contains(err.Error(), "steps") || d.Allowed {
			t.Errorf("%s: %+v, %v", call, d, err)
		}
		if d, err := e.Decide(t.Context(), value(t, map[string]any{"texts": few, "pointers": few, "json": members(few)})); err != nil || !d.Allowed {
			t.Errorf("%s of few: %+v, %v", call, d, err)
		}
	}
}
