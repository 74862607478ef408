package witness

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit/evidence"
)

// put replaces what is remembered of a log, whatever that is.
func put(ctx context.Context, m *ConfigMaps, origin, checkpoint string) error {
	turn, err := m.Begin(ctx, origin)
	if err != nil {
		return err
	}
	defer turn.End()
	return turn.Write(ctx, Entry{Checkpoint: []byte(checkpoint)})
}

// known makes logs of one shard, each with a line.
func known(t *testing.T, m *ConfigMaps, count int) []string {
	t.Helper()
	origins := inShard(count)
	for _, origin := range origins {
		for _, c := range []string{"first", "second"} {
			if err := put(t.Context(), m, origin, c); err != nil {
				t.Fatal(err)
			}
		}
	}
	return origins
}

func TestRequestsThatComeDuringAWriteAreStoredByTheNext(t *testing.T) {
	server := newAPI()
	m := server.memory()
	origins := known(t, m, 30)
	_, before := server.writes()
	writing, goOn := make(chan struct{}), make(chan struct{})
	server.before = func(string) error {
		close(writing)
		<-goOn
		server.before = nil // no other write runs
		return nil
	}
	results := make(chan error, len(origins))
	go func() { results <- put(t.Context(), m, origins[0], "third") }()
	<-writing
	for _, origin := range origins[1:] {
		go func() { results <- put(t.Context(), m, origin, "third") }()
	}
	for m.rounds.waiting(origins[0]) < len(origins)-1 {
		time.Sleep(time.Millisecond)
	}
	select {
	case err := <-results:
		t.Errorf("answered before anything was stored: %v", err)
	default:
	}
	close(goOn)
	for range origins {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if _, shared := server.writes(); shared != before+2 {
		t.Errorf("%d writes for 30 logs, want 2", shared-before)
	}
	for _, origin := range origins {
		if e := last(t, server, origin); string(e.Checkpoint) != "third" {
			t.Errorf("%s: %q", origin, e.Checkpoint)
		}
	}
}

// waiting is how many members wait for the next round of a log's shard.
func (r *rounds) waiting(origin string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.shards[shardOf(origin)].members)
}

func TestOfTwoReplicasThatWriteAShardNoneLosesAnything(t *testing.T) {
	server := newAPI()
	m, other := server.memory(), server.memory()
	origins := known(t, m, 2)
	ours, theirs := origins[0], origins[1]
	faster := func(origin string) {
		server.before = func(string) error {
			server.before = nil
			return put(t.Context(), other, origin, "theirs")
		}
	}
	faster(theirs)
	if err := put(t.Context(), m, ours, "ours"); err != nil {
		t.Errorf("another log has changed: %v", err)
	}
	for origin, want := range map[string]string{ours: "ours", theirs: "theirs"} {
		if e := last(t, server, origin); string(e.Checkpoint) != want {
			t.Errorf("%s: %q, want %q", origin, e.Checkpoint, want)
		}
	}
	faster(ours)
	if err := put(t.Context(), m, ours, "ours again"); !errors.Is(err, evidence.ErrChanged) {
		t.Errorf("the log has changed: %v", err)
	}
	if e := last(t, server, ours); string(e.Checkpoint) != "theirs" {
		t.Errorf("%q", e.Checkpoint)
	}
	if err := put(t.Context(), m, ours, "ours at last"); err != nil {
		t.Errorf("the log has not changed since: %v", err)
	}
}

func TestALogIsWrittenOnceInARound(t *testing.T) {
	server := newAPI()
	m := server.memory()
	origin := known(t, m, 1)[0]
	results := make(chan error, 2)
	one, err := m.Begin(t.Context(), origin)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []string{"a", "b"} { // both wait for the round that follows
		go func() { results <- put(t.Context(), m, origin, c) }()
	}
	for m.rounds.waiting(origin) < 2 {
		time.Sleep(time.Millisecond)
	}
	one.End()
	a, b := <-results, <-results
	if (a == nil) == (b == nil) || !errors.Is(errors.Join(a, b), evidence.ErrChanged) {
		t.Errorf("%v and %v", a, b)
	}
}

func TestAReplicaThatIsNeverTheFastestGivesUp(t *testing.T) {
	server := newAPI()
	m, other := server.memory(), server.memory()
	origins := known(t, m, 2)
	tries := 0
	var race func(string) error
	race = func(string) error {
		server.before = nil
		defer func() { server.before = race }()
		tries++
		return put(t.Context(), other, origins[1], strconv.Itoa(tries))
	}
	server.before = race
	if err := put(t.Context(), m, origins[0], "third"); !errors.Is(err, evidence.ErrChanged) || tries != mostConflicts {
		t.Errorf("after %d: %v", tries, err)
	}
	server.before = nil
	if e := last(t, server, origins[0]); string(e.Checkpoint) != "second" {
		t.Errorf("%q", e.Checkpoint)
	}
}

// A log is let start over while a request for the one before is on its way, by another replica.
func TestALogThatStartsOverMeanwhileKeepsWhatItStored(t *testing.T) {
	server := newAPI()
	m, other := server.memory(), server.memory()
	origin := known(t, m, 1)[0]
	former, err := m.Begin(t.Context(), origin)
	if err != nil {
		t.Fatal(err)
	}
	server.remove(ConfigMapName(origin))
	for _, c := range []string{"new first", "new second"} {
		if err := put(t.Context(), other, origin, c); err != nil {
			t.Fatal(err)
		}
	}
	if err := former.Write(t.Context(), Entry{Checkpoint: []byte("of the former")}); !errors.Is(err, evidence.ErrChanged) {
		t.Errorf("%v", err)
	}
	if e := last(t, server, origin); string(e.Checkpoint) != "new second" {
		t.Errorf("%q", e.Checkpoint)
	}
}

func TestAMemberThatIsSlowDelaysTheOthersNotForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newAPI()
		m := server.memory()
		origins := known(t, m, 2)
		gate := make(chan struct{})
		result := make(chan error)
		go func() {
			turn, err := m.Begin(t.Context(), origins[0])
			if err != nil {
				result <- err
				return
			}
			<-gate
			result <- turn.Write(t.Context(), Entry{Checkpoint: []byte("late")})
		}()
		synctest.Wait() // it is a member now
		began := time.Now()
		if err := put(t.Context(), m, origins[1], "third"); err != nil || time.Since(began) > 2*maxJudging {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		time.Sleep(maxJudging)
		close(gate)
		if err := <-result; !errors.Is(err, evidence.ErrChanged) {
			t.Errorf("the round has gone on: %v", err)
		}
		if e := last(t, server, origins[0]); string(e.Checkpoint) != "second" {
			t.Errorf("%q", e.Checkpoint)
		}
	})
}

func TestAReplicaBeginsNoMoreThanOneRoundASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newAPI()
		m := server.memory()
		var origins []string
		for i := range 100 {
			origins = append(origins, fmt.Sprintf("log %d", i))
			for range 2 {
				if err := put(t.Context(), m, origins[i], "x"); err != nil {
					t.Fatal(err)
				}
			}
		}
		m.rounds.every = betweenRounds
		_, before := server.writes()
		began := time.Now()
		var running sync.WaitGroup
		for round := range 10 {
			for _, origin := range origins {
				running.Go(func() {
					if err := put(t.Context(), m, origin, strconv.Itoa(round)); err != nil {
						t.Error(err)
					}
				})
			}
			running.Wait()
		}
		_, after := server.writes()
		if seconds := time.Since(began).Seconds(); float64(after-before) > seconds+1 || after-before != 10*shards {
			t.Errorf("%d writes in %.0f s", after-before, seconds)
		}
	})
}

func TestARequestThatIsCancelledWaitsNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newAPI()
		m := server.memory()
		m.rounds.every = time.Hour
		origin := inShard(1)[0]
		if err := put(t.Context(), m, origin, "first"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := put(ctx, m, origin, "second"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		time.Sleep(2 * time.Hour)
		if _, shared := server.writes(); shared != 0 {
			t.Errorf("%d writes for nobody", shared)
		}
	})
}

func TestAShardThatCannotBeReadKeepsNoOtherLogWaiting(t *testing.T) {
	server := newAPI()
	m := server.memory()
	origin := known(t, m, 1)[0]
	server.put(ShardName(origin), nil, nil)
	if err := put(t.Context(), m, origin, "third"); !errors.Is(err, ErrMemory) {
		t.Errorf("%v", err)
	}
	for i := range 100 {
		if other := fmt.Sprint(i); ShardName(other) != ShardName(origin) {
			if err := put(t.Context(), m, other, "first"); err != nil {
				t.Errorf("%s: %v", ShardName(other), err)
			}
		}
	}
}

func TestAFullShardTakesNoNewLogAndLosesNone(t *testing.T) {
	server := newAPI()
	m := server.memory()
	origin := inShard(1)[0]
	filled(t, server, roomForNew+20<<10, origin)
	strange := inShard(500)[499]
	if err := put(t.Context(), m, strange, "first"); err != nil {
		t.Fatal(err)
	}
	if err := put(t.Context(), m, strange, "second"); !errors.Is(err, errFull) {
		t.Errorf("a log that is new there: %v", err)
	}
	if e := last(t, server, strange); string(e.Checkpoint) != "first" {
		t.Errorf("%q", e.Checkpoint)
	}
	if err := put(t.Context(), m, origin, "second"); err != nil {
		t.Errorf("a log that is there: %v", err)
	}
	filled(t, server, maxShard+20<<10, origin)
	if err := put(t.Context(), m, origin, "third"); !errors.Is(err, errFull) {
		t.Errorf("past all bounds: %v", err)
	}
}

func TestLinesOfLogsThatAreGoneMakeRoom(t *testing.T) {
	server := newAPI()
	m := server.memory()
	origins := known(t, m, 5)
	for _, origin := range origins[1:] {
		server.remove(ConfigMapName(origin))
	}
	for i := 0; len(server.lines(t, origins[0])) > 1; i++ {
		if i > 1000 { // each round looks at one of five, in no order
			t.Fatalf("left: %v", server.lines(t, origins[0]))
		}
		if err := put(t.Context(), m, origins[0], strconv.Itoa(i)); err != nil {
			t.Fatal(err)
		}
	}
	if e := last(t, server, origins[0]); e.Checkpoint == nil {
		t.Error("one that is not gone was forgotten")
	}
}

// Replicas count for each log, and an API server now and then fails before or after it has stored something.
func TestNoReplicaLosesWhatAnotherHasPromised(t *testing.T) {
	server := newAPI()
	replicas := []*ConfigMaps{server.memory(), server.memory(), server.memory()}
	origins := inShard(4)
	var calls atomic.Int64
	fails := func(string) error {
		if calls.Add(1)%17 == 0 {
			return errDown
		}
		return nil
	}
	server.before, server.after = fails, fails
	promised := make([]sync.Map, len(origins)) // of a log, a number stands for a history: none is promised twice
	var running sync.WaitGroup
	for i := range 12 {
		running.Go(func() {
			for range 40 {
				which := rand.IntN(len(origins))
				n, err := count(t.Context(), replicas[i%3], origins[which])
				if err != nil {
					continue
				}
				if _, isTwice := promised[which].LoadOrStore(n, true); isTwice {
					t.Errorf("%s: %d was promised twice", origins[which], n)
				}
			}
		})
	}
	running.Wait()
	server.before, server.after = nil, nil
	for i, origin := range origins {
		stored, err := strconv.ParseInt(string(last(t, server, origin).Checkpoint), 10, 64)
		most := int64(0)
		promised[i].Range(func(n, _ any) bool {
			most = max(most, n.(int64))
			return true
		})
		if err != nil || most == 0 || stored < most {
			t.Errorf("%s: %d is stored, %d was promised: %v", origin, stored, most, err)
		}
	}
}

// count adds one to the number that is remembered of a log.
func count(ctx context.Context, m *ConfigMaps, origin string) (int64, error) {
	turn, err := m.Begin(ctx, origin)
	if err != nil {
		return 0, err
	}
	defer turn.End()
	n, _ := strconv.ParseInt(string(turn.Entry().Checkpoint), 10, 64) // 0 at first
	n++
	if err := turn.Write(ctx, Entry{Checkpoint: strconv.AppendInt(nil, n, 10)}); err != nil {
		return 0, err
	}
	return n, nil
}
