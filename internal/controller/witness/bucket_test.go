package witness

import (
	"fmt"
	"testing"
	"time"
)

func TestABucketHoldsNoMoreThanItsBurst(t *testing.T) {
	now := time.Now()
	b := newBucket(3, 2, func() time.Time { return now })
	taken := func() (n int) {
		for b.take() {
			n++
		}
		return n
	}
	for i, step := range []struct {
		after time.Duration
		want  int
	}{{0, 3}, {0, 0}, {500 * time.Millisecond, 1}, {-time.Hour, 0}, {time.Second, 2}, {time.Hour, 3}} {
		now = now.Add(step.after)
		if got := taken(); got != step.want {
			t.Errorf("step %d: %d, want %d", i, got, step.want)
		}
	}
}

func TestBucketsOfManyNamesAreBounded(t *testing.T) {
	b := buckets{make: func() *bucket { return newBucket(1, 1, time.Now) }, most: 10}
	for i := range 100 {
		if !b.take(fmt.Sprint(i)) {
			t.Errorf("name %d has had nothing yet", i)
		}
		if len(b.all) > 10 {
			t.Fatalf("%d names are kept", len(b.all))
		}
	}
	if b.take("99") {
		t.Error("another burst")
	}
}
