package pipepath

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// vector is one entry of testdata/pipe-path-vectors.json.
type vector struct {
	HostPath  string  `json:"hostPath"`
	SubPath   *string `json:"subPath"`
	Kind      Kind    `json:"kind"`
	Canonical string  `json:"canonical"`
	Match     bool    `json:"match"`
}

func (v vector) subPath() string {
	if v.SubPath == nil {
		return ""
	}
	return *v.SubPath
}

func vectors(t testing.TB) []vector {
	t.Helper()
	data, err := os.ReadFile("testdata/pipe-path-vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []vector
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	if len(all) < 50 {
		t.Fatalf("only %d vectors", len(all))
	}
	return all
}

func defaultGuard(t testing.TB) *Guard {
	t.Helper()
	g, err := NewGuard(DefaultPatterns()...)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestJudgeMountAgreesWithVectors(t *testing.T) {
	g := defaultGuard(t)
	for _, want := range vectors(t) {
		v := g.JudgeMount(want.HostPath, want.subPath())
		got := vector{want.HostPath, want.SubPath, v.Kind, v.Canonical, v.Match}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: -want +got\n%s", want.HostPath, diff)
		}
	}
}
