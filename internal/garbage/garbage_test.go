package garbage

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

func TestEightMebibytesAndHalfOfWhatLivesMayGather(t *testing.T) {
	t.Setenv("GOGC", "")
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	defer func() { ballast = nil }()
	Limit()
	runtime.GC()
	figures := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/heap/goal:bytes"}}
	metrics.Read(figures)
	live, goal := figures[0].Value.Uint64(), figures[1].Value.Uint64()
	runtime.KeepAlive(ballast)
	if live < ballastBytes {
		t.Fatalf("%d bytes live, the ballast among them has %d", live, ballastBytes)
	}
	if room := goal - live; room < live/2 || room > live/2+(1<<20) { // stacks and globals count as well
		t.Errorf("%d bytes may gather beside %d that live", room, live)
	}
}

func TestTheEnvironmentSetsThePace(t *testing.T) {
	t.Setenv("GOGC", "123")
	defer debug.SetGCPercent(debug.SetGCPercent(123))
	Limit()
	if ballast != nil {
		t.Error("there is a ballast")
	}
	if percent := debug.SetGCPercent(123); percent != 123 {
		t.Errorf("the pace is %d", percent)
	}
}
