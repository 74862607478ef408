package copies

import (
	"context"
	"testing"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/winsvc"
)

// quiet is an event log that nobody reads.
type quiet struct{}

var _ winsvc.EventLog = quiet{}

func (quiet) Info(uint32, string) error    { return nil }
func (quiet) Warning(uint32, string) error { return nil }
func (quiet) Error(uint32, string) error   { return nil }
func (quiet) Close() error                 { return nil }

// BenchmarkRecord is what the writer of the log pays while there is room, and while there is none.
func BenchmarkRecord(b *testing.B) {
	stuck := func(name string) Destination {
		return &place{name: name, send: func(ctx context.Context, _ []Record) error { <-ctx.Done(); return ctx.Err() }}
	}
	for _, tc := range []struct {
		name   string
		places []Destination
		edit   func(*audit.Event)
		isFull bool
	}{
		{"one place", []Destination{stuck("a")}, func(*audit.Event) {}, false},
		{"three places", []Destination{stuck("a"), stuck("b"), stuck("c")}, func(*audit.Event) {}, false},
		{"event log of denied, fine", []Destination{EventLog(quiet{}, Denied)}, func(*audit.Event) {}, false},
		{"full queue", []Destination{stuck("a")}, func(*audit.Event) {}, true},
	} {
		b.Run(tc.name, func(b *testing.B) {
			c := mustNew(b, Options{Destinations: tc.places})
			l := line(b, tc.edit)
			b.SetBytes(int64(len(l)))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if i%1000 == 0 && !tc.isFull {
					b.StopTimer()
					for _, q := range c.queues {
						for batch := q.take(); len(batch) > 0; batch = q.take() {
							q.settle(batch, 0, nil)
						}
					}
					b.StartTimer()
				}
				c.Record(l)
			}
			b.StopTimer()
			if d := c.Stats()[0].Dropped; d > 0 != tc.isFull {
				b.Errorf("%d dropped", d)
			}
			ctx, stop := context.WithCancel(context.Background())
			stop()
			_ = c.Close(ctx)
		})
	}
}

func BenchmarkIsFine(b *testing.B) {
	l := line(b)
	b.ReportAllocs()
	for b.Loop() {
		if !isUneventful(l) {
			b.Fatal("not fine")
		}
	}
}

// BenchmarkSend is what the goroutine of a destination pays for a record, before any network.
func BenchmarkSend(b *testing.B) {
	l := line(b, denied)
	b.Run("otlp record", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = logRecord(Record{Line: l}, 1)
		}
	})
	b.Run("event", func(b *testing.B) {
		p := EventLog(quiet{}, All)
		b.ReportAllocs()
		for b.Loop() {
			_ = p.Send(context.Background(), []Record{{Line: l}})
		}
	})
}
