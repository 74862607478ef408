//go:build unix

package segment

import (
	"bufio"
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
)

var kills = flag.Int("segment.kills", 20, "how often the writing process is killed")

const killedEnv = "PIPEGUARD_TEST_SEGMENT_DIR"

// TestWriteUntilKilled is the process that is killed. What it carries out it tells the test through a pipe, which keeps it whatever
// becomes of the process.
func TestWriteUntilKilled(t *testing.T) {
	dir := os.Getenv(killedEnv)
	if dir == "" {
		t.Skip("only for the test that kills it")
	}
	w, err := Open(t.Context(), dir, Options{SegmentBytes: 100_000})
	if err != nil {
		t.Fatal(err)
	}
	for range 16 {
		go func() {
			for {
				id := rand.Text()
				seq, err := w.Append(context.Background(), request(id, audit.StageRequestReceived, 0))
				if err != nil {
					continue
				}
				fmt.Fprintln(os.Stdout, "ran "+id)
				if _, err := w.Append(context.Background(), request(id, audit.StageResponseComplete, seq)); err == nil {
					fmt.Fprintln(os.Stdout, "ended "+id)
				}
			}
		}()
	}
	time.Sleep(time.Minute) // should the test have gone
}

func TestAKilledProcessLeavesNoOperationWithoutRecords(t *testing.T) {
	dir, l := t.TempDir(), newLedger()
	ran := 0
	for range *kills {
		cmd := exec.Command(os.Args[0], "-test.run=^TestWriteUntilKilled$")
		cmd.Env = append(os.Environ(), killedEnv+"="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		in := bufio.NewReader(out)
		if _, err := in.Peek(1); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Duration(mathrand.IntN(100_000))*time.Microsecond, func() { _ = cmd.Process.Kill() })
		for {
			line, err := in.ReadString('\n')
			if err == io.EOF {
				break
			}
			what, id, _ := strings.Cut(strings.TrimSpace(line), " ")
			switch {
			case err != nil:
				t.Fatal(err)
			case what == "ran":
				l.acknowledged[id+"/RequestReceived"] = 0
				ran++
			case what == "ended":
				l.acknowledged[id+"/ResponseComplete"] = 0
			default:
				t.Fatalf("the process said %q", line)
			}
		}
		_ = cmd.Wait()
	}
	w, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	disk := w.log.disk
	shut(t, w)
	events := records(t, disk)
	settled(t, events)
	intents, ends, orphans := map[string]int{}, map[string]int{}, 0
	for _, e := range events {
		key := e.ID + "/" + string(e.Stage)
		switch {
		case e.Type != audit.TypeRequest:
			continue
		case e.Stage == audit.StageRequestReceived:
			intents[e.ID]++
		default:
			ends[e.ID]++
		}
		if e.Stage == audit.StageOrphaned {
			orphans++
		}
		delete(l.acknowledged, key)
	}
	for key := range l.acknowledged {
		t.Errorf("%s was told and is not in the log", key)
	}
	for id, n := range intents {
		if n != 1 || ends[id] != 1 {
			t.Errorf("%s has %d intents and %d ends", id, n, ends[id])
		}
	}
	if len(ends) != len(intents) || ran == 0 {
		t.Errorf("%d requests ended of %d, %d were seen to run", len(ends), len(intents), ran)
	}
	t.Logf("%d kills, %d operations ran, %d intents, %d orphaned, %d records", *kills, ran, len(intents), orphans, len(events))
}
