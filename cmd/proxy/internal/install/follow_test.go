package install

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestFollowKeepsWhatIsWanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		ctx, cancel := context.WithCancel(t.Context())
		var attempts, failures atomic.Int64
		done := make(chan struct{})
		installer := s.installer()
		go func() {
			defer close(done)
			installer.Follow(ctx, func(_ bool, err error) {
				attempts.Add(1)
				if err != nil {
					failures.Add(1)
				}
			})
		}()
		after := func(d time.Duration) {
			time.Sleep(d)
			synctest.Wait()
		}
		after(0)
		s.has("one", "good 1")
		s.runs(true)
		if err := s.services.Stop(ctx, "csiproxy"); err != nil {
			t.Fatal(err)
		}
		after(Look)
		s.runs(true)
		s.write(s.want.ConfigFrom, "good 2")
		after(2 * time.Second)
		s.has("one", "good 2")
		if n := failures.Load(); n != 0 {
			t.Errorf("%d failures", n)
		}
		s.write(s.want.ConfigFrom, "bad")
		before := attempts.Load()
		after(time.Hour)
		s.has("one", "good 2")
		if n := attempts.Load() - before; n < 5 || n > 20 {
			t.Errorf("a configuration that is refused is tried %d times an hour", n)
		}
		s.write(s.want.ConfigFrom, "good 3")
		after(2 * time.Second)
		s.has("one", "good 3")
		cancel()
		<-done
		s.runs(true)
	})
}
