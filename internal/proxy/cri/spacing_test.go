package cri

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Callers that are in no container are asked about with every connection, and connections cost them nothing.
func TestAFloodOfCallersAsksTheRuntimeSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := onePod()
		c := serve(t, f)
		const flood = 3 * time.Second
		began := time.Now()
		var callers sync.WaitGroup
		for range 8 {
			callers.Go(func() {
				for time.Since(began) < flood {
					if list, err := c.Refresh(t.Context()); err != nil || names(list) != "csi-a" {
						t.Errorf("got %v, %v", list, err)
						return
					}
				}
			})
		}
		callers.Wait()
		if got, most := f.asked(), int(flood/spacing)+1; got > most {
			t.Errorf("the runtime was asked %d times in %v, want %d at most", got, flood, most)
		}
		time.Sleep(spacing)
		before := time.Now()
		if _, err := c.Refresh(t.Context()); err != nil || time.Since(before) != 0 {
			t.Errorf("a question after a pause took %v: %v", time.Since(before), err)
		}
	})
}
