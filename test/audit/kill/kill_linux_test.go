package kill

import (
	"flag"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/test/audit/evidencetest"
)

var kills = flag.Int("audit.kills", 25, "how often the proxy is killed")

// A life is cut short after this long at most, counted from the first answer, and some from the start of the process.
const (
	life     = 60 * time.Millisecond
	longLife = 1500 * time.Millisecond // in which a checkpoint is signed
)

func TestAKilledProxyLeavesNoOperationWithoutItsRecords(t *testing.T) {
	p := newPlace(t)
	j := newJudge(t, p)
	verified := 0
	times := *kills
	if testing.Short() {
		times = min(times, 5)
	}
	for run := range times {
		x := p.start(t)
		if run%10 == 3 { // while it recovers, or soon after
			time.Sleep(rand.N(life))
			x.Kill()
			continue
		}
		x.await(t)
		j.readLog(t)
		l := begin(t, p, run)
		<-l.first
		if run%20 == 4 {
			time.Sleep(rand.N(longLife))
		} else {
			time.Sleep(rand.N(life))
		}
		x.Kill()
		maps.Copy(j.told, l.end())
		j.readJournal(t)
		if run < 25 || run%100 == 0 {
			verify(t, p, false)
			verified++
		}
		if t.Failed() {
			t.Fatalf("after kill %d", run+1)
		}
	}
	// Two lives end in order: the first one ends what was open, and the second one sees that.
	// Nothing is lost of what that one refused.
	for i := range 2 {
		x := p.start(t)
		x.await(t)
		j.readLog(t)
		if i == 0 {
			l := begin(t, p, times)
			select {
			case <-l.spent:
			case <-time.After(10 * patience):
				t.Fatal("the callers are not refused often enough")
			}
			maps.Copy(j.told, l.end())
			j.readJournal(t)
			j.whole[times] = true
		}
		x.end(t)
	}
	j.verdict(t)
	verify(t, p, true)
	t.Logf("%d kills, %d verifications", times, verified+1)
}

// verify looks for changes with the public key and the checkpoints. After the log was closed, the last one covers all.
func verify(t *testing.T, p *place, closed bool) {
	t.Helper()
	keys, err := evidence.ReadKeys(p.log + "-signing.key.pub")
	if err != nil {
		t.Fatal(err)
	}
	o := evidence.VerifyOptions{Dir: p.log, Keys: keys}
	if closed { // as if a copy had been kept elsewhere
		key, err := evidence.ReadKey(p.log + "-signing.key")
		if err != nil {
			t.Fatal(err)
		}
		o.Outside = []string{evidencetest.Elsewhere(t, p.log, key)}
	}
	r, err := evidence.Verify(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if r.Verdict == evidence.VerdictTampered || closed && r.Verdict != evidence.VerdictOK {
		t.Errorf("verdict %s of %d records, %d of them under a checkpoint: fault %v, incomplete %v", r.Verdict, r.Records, r.OwnCovered, r.Fault, r.Incomplete)
	}
	if closed {
		t.Logf("verdict %s: %d segments, %d MiB, %d records, %d checkpoints, %d bytes of writes that were cut short", r.Verdict, r.Segments, r.Bytes>>20, r.Records, r.Checkpoints, r.IgnoredBytes)
	}
}
