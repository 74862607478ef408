package copies

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/evidence"
)

func checkpoint(note string, isLast bool) evidence.Copy {
	return evidence.Copy{Raw: []byte(note), IsLast: isLast}
}

func TestACheckpointComesBehindTheRecordsBeforeItAndAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var batches []string
		p := &notary{place: &place{name: "p", send: func(_ context.Context, records []Record) error {
			<-release
			var b strings.Builder
			for _, r := range records {
				b.Write(r.Line)
				b.WriteString(string(r.Checkpoint))
			}
			batches = append(batches, b.String())
			return nil
		}}}
		c := mustNew(t, Options{Destinations: []Destination{p, &place{name: "takes none"}}})
		sinks := c.Checkpoints()
		if len(sinks) != 1 || sinks[0].Name() != "p" {
			t.Fatalf("%d sinks", len(sinks))
		}
		c.Record([]byte("a"))
		synctest.Wait()
		c.Record([]byte("b"))
		c.Record([]byte("c"))
		answer := make(chan error)
		go func() { answer <- sinks[0].Send(t.Context(), checkpoint("NOTE", false)) }()
		synctest.Wait()
		c.Record([]byte("d"))
		close(release)
		if err := <-answer; err != nil {
			t.Error(err)
		}
		mustClose(t, c)
		if diff := cmp.Diff([]string{"a", "bc", "NOTE", "d"}, batches); diff != "" {
			t.Error(diff)
		}
		if s := c.Stats()[0]; s.Sent != 4 {
			t.Errorf("checkpoints count as records: %+v", s)
		}
	})
}

func TestACheckpointThatIsNotTakenIsAnErrorAndLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &notary{place: &place{name: "p", send: func(ctx context.Context, _ []Record) error { <-ctx.Done(); return ctx.Err() }}}
		c := mustNew(t, Options{Destinations: []Destination{p}})
		c.Record(raw(10))
		synctest.Wait()
		for range 1000 {
			ctx, stop := context.WithTimeout(t.Context(), time.Second)
			if err := c.Checkpoints()[0].Send(ctx, checkpoint("NOTE", false)); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			stop()
		}
		if n := len(c.queues[0].items); n != 0 {
			t.Errorf("%d checkpoints wait that nobody waits for", n)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if err := c.Close(ctx); err == nil {
			t.Error("a record was lost and nobody said so")
		}
	})
}

func TestACheckpointHasRoomInAFullQueueAndIsTriedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		p := &notary{place: &place{name: "p"}}
		p.send = func(_ context.Context, records []Record) error {
			if records[0].Checkpoint != nil {
				tries++
				return &AgainError{Err: errors.New("away")}
			}
			time.Sleep(10 * time.Second)
			return nil
		}
		c := mustNew(t, Options{Destinations: []Destination{p}, Queue: 20_000})
		for range 100 {
			c.Record(raw(1000))
		}
		if err := c.Checkpoints()[0].Send(t.Context(), checkpoint("NOTE", false)); err == nil || err.Error() != "away" {
			t.Errorf("error %v", err)
		}
		if tries != 1 {
			t.Errorf("tried %d times: a newer one says more", tries)
		}
		mustClose(t, c)
	})
}

func TestCheckpointsAreThinnedOutButForTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &notary{place: &place{name: "p"}, every: time.Minute}
		c := mustNew(t, Options{Destinations: []Destination{p}})
		s := c.Checkpoints()[0]
		for range 150 {
			if err := s.Send(t.Context(), checkpoint("NOTE", false)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if err := s.Send(t.Context(), checkpoint("LAST", true)); err != nil {
			t.Fatal(err)
		}
		mustClose(t, c)
		var got []string
		for _, r := range p.taken {
			got = append(got, string(r.Checkpoint))
		}
		if diff := cmp.Diff([]string{"NOTE", "NOTE", "NOTE", "LAST"}, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestACheckpointIsNeverTakenForARecord(t *testing.T) {
	record := strings.TrimSuffix(string(line(t)), "\n")
	for name, note := range map[string]string{
		"a note":              "pipeguard.dev/audit/node-1\n7\nAAAA=\n\n— pipeguard.dev/audit/node-1 AbCd\n",
		"a record":            record,
		"a record in a quote": `"}` + "\n" + record + "\n{\"",
		"hostile text":        "\x1b[2J\u202e</script>\x00\r\n",
	} {
		got, err := checkpointLine([]byte(note))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := audit.Parse(got); err == nil {
			t.Errorf("%s: %s is a record", name, got)
		}
		var back struct{ Type, Note string }
		if err := json.Unmarshal(got, &back); err != nil || back.Type != "checkpoint" || back.Note != note {
			t.Errorf("%s came back as %+v, %v", name, back, err)
		}
		if strings.ContainsAny(string(got), "\n\r\x1b\x00\u202e<") {
			t.Errorf("%s: %q", name, got)
		}
	}
}
