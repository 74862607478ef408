package winsvc

import (
	"os"
	"os/signal"
	"sync"
)

// onHangup calls reload for every SIGHUP until stop is called. Without hangups on this system it does nothing.
func onHangup(reload func()) (stop func()) {
	if hangup == nil {
		return func() {}
	}
	signals := make(chan os.Signal, 1) // one that waits stands for all that come meanwhile
	signal.Notify(signals, hangup)
	var waiter sync.WaitGroup
	done := make(chan struct{})
	waiter.Go(func() {
		for {
			select {
			case <-signals:
				reload()
			case <-done:
				return
			}
		}
	})
	return func() {
		signal.Stop(signals)
		close(done)
		waiter.Wait()
	}
}
