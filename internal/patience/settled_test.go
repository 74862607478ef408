package patience_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pipeguard/pipeguard/internal/patience"
)

func TestSettledTakesWhatStaysTheSame(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		name  string
		reads []string // the last repeats; "!" is an error
		want  string
		took  int
		err   error
	}{
		{"what is known is read once", []string{"known"}, "known", 1, nil},
		{"what is new is read twice", []string{"new"}, "new", 2, nil},
		{"a file that is being written", []string{"n", "ne", "new"}, "new", 4, nil},
		{"a file that is put back", []string{"n", "known", "other"}, "known", 2, nil},
		{"a fault", []string{"!"}, "", 1, broken},
		{"a fault at the second read", []string{"new", "!"}, "", 2, broken},
	} {
		synctest.Test(t, func(t *testing.T) {
			n, began := 0, time.Now()
			got, key, err := patience.Settled(t.Context(), time.Second, "known", func() (string, string, error) {
				text := c.reads[min(n, len(c.reads)-1)]
				if n++; text == "!" {
					return "", "", broken
				}
				return text, text, nil
			})
			if got != c.want || key != c.want || !errors.Is(err, c.err) || n != c.took || time.Since(began) != time.Duration(n-1)*time.Second {
				t.Errorf("%s: %q, %q, %v after %d reads and %v", c.name, got, key, err, n, time.Since(began))
			}
		})
	}
}

func TestSettledEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		changing := func() (int, int, error) { n++; return n, n, nil }
		if _, _, err := patience.Settled(t.Context(), time.Second, 0, changing); !errors.Is(err, patience.ErrUnsettled) || n > 100 {
			t.Errorf("%v after %d reads", err, n)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		if _, _, err := patience.Settled(ctx, time.Second, 0, changing); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}
