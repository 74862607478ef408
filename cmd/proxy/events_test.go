package main

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/logkeys"
)

// written is an event log in memory.
type written struct{ lines []string }

func (w *written) add(kind string, id uint32, text string) error {
	w.lines = append(w.lines, strings.Join([]string{kind, time.Duration(id).String(), text}, " "))
	return nil
}
func (w *written) Info(id uint32, text string) error    { return w.add("info", id, text) }
func (w *written) Warning(id uint32, text string) error { return w.add("warning", id, text) }
func (w *written) Error(id uint32, text string) error   { return w.add("error", id, text) }
func (w *written) Close() error                         { return nil }

func TestOnlyEventsAndErrorsReachTheEventLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &written{}
		log := zap.New(newEventCore(w)).With(zap.String(logkeys.Pipe, "p"))
		log.Info("a call")
		log.Warn("a warning")
		log.Debug("a detail", event(eventServing))
		log.Info("serving", event(eventServing))
		log.Warn("changed", event(eventNeedsRestart), zap.Strings(logkeys.Name, []string{"a", "b"}))
		log.Error("broken", zap.Error(errors.New("a\x00b")))
		log.Error("broken", zap.Error(errors.New("within a minute of the first")))
		log.Error("broken too")
		time.Sleep(otherInterval)
		log.Error("broken")
		want := []string{
			"info 101ns serving\r\npipe: p",
			"warning 112ns changed\r\nname: [a b]\r\npipe: p",
			"error 199ns broken\r\nerror: a?b\r\npipe: p",
			"error 199ns broken too\r\npipe: p",
			"error 199ns broken\r\npipe: p",
		}
		if diff := cmp.Diff(want, w.lines); diff != "" {
			t.Error(diff)
		}
	})
}

func TestALongEventIsCut(t *testing.T) {
	if text := eventText(strings.Repeat("x", 40_000), nil); len(text) != maxEvent {
		t.Errorf("%d bytes", len(text))
	}
}
