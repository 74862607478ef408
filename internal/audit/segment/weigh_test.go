package segment

import "testing"

func TestRangesOfRecordsAreLookedUp(t *testing.T) {
	all := []numbers{{30, 40}, {10, 19}, {5, 5}}
	for seq, want := range map[uint64]bool{1: false, 4: false, 5: true, 6: false, 10: true, 19: true, 20: false, 29: false, 30: true, 35: true, 40: true, 41: false} {
		if got := isWithin(all, seq); got != want {
			t.Errorf("%d: %t, want %t", seq, got, want)
		}
	}
	if isWithin(nil, 1) {
		t.Error("a record is within no ranges")
	}
}
