package acl

import (
	"testing"
	"time"
)

func TestABucketGivesWhatItHasAndWhatComesBack(t *testing.T) {
	var b Bucket
	rate, now := Rate{Most: 10, PerSecond: 2}, time.Unix(1e9, 0)
	if left := b.Left(rate, now); left != 10 {
		t.Errorf("a new one has %v", left)
	}
	b.Take(14)
	for _, step := range []struct {
		after time.Duration
		left  float64
	}{{0, -4}, {time.Second, -2}, {4 * time.Second, 6}, {time.Minute, 10}} {
		now = now.Add(step.after)
		if left := b.Left(rate, now); left != step.left {
			t.Errorf("%v later it has %v, want %v", step.after, left, step.left)
		}
	}
	b.Take(3)
	if b.Take(-5); b.Left(rate, now) != 10 {
		t.Errorf("what was given back makes it %v", b.Left(rate, now))
	}
}
