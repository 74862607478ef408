package main

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestThreadTimeIsThatOfOneThread(t *testing.T) {
	const long = 200 * time.Millisecond
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	own, release := threadTime()
	defer release()
	before := own()
	var worked atomic.Int64
	var stop atomic.Bool
	var all sync.WaitGroup
	defer all.Wait()
	defer stop.Store(true)
	all.Go(func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		used, release := threadTime()
		defer release()
		for !stop.Load() {
			worked.Store(int64(used()))
		}
	})
	for time.Duration(worked.Load()) < long {
		time.Sleep(time.Millisecond)
	}
	if used := own() - before; used > long/2 {
		t.Errorf("%v, while another thread used %v", used, time.Duration(worked.Load()))
	}
	for before := own(); own() < before+long/4; { //nolint:revive // it works
	}
}
