package main

import "testing"

func TestMemoryIsGivenBackWhenWorkIsOver(t *testing.T) {
	const mib = 1 << 20
	var r lull
	made := uint64(0)
	for i, step := range []struct {
		mib  uint64
		want bool
	}{
		{30, false}, // the start
		{1, true},   // which is over
		{1, false}, {1, false},
		{50, false}, {50, false}, // work
		{4, true},                                     // which is over
		{0, false},                                    // given back already
		{4, false}, {4, false}, {4, false}, {4, true}, // little by little
	} {
		made += step.mib * mib
		if got := r.isDue(made); got != step.want {
			t.Errorf("step %d: %v", i, got)
		}
	}
}
