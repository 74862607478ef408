package witness

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"testing"
	"time"
)

// A few logs that take the last of a shard must not keep the others from being cosigned.
func TestALogThatOverfillsAShardHoldsUpNoOther(t *testing.T) {
	server := newAPI()
	m := server.memory()
	logs := inShard(1)
	size := maxShard
	for room := 0; room < 4<<10; size -= 8 << 10 { // noise of digits takes a little more than the noise
		filled(t, server, size, logs[0])
		room = maxShard - len(server.get(ShardName(logs[0])).BinaryData[keyLines])
	}
	noise := make([]byte, 3800)
	greedy := inShard(100)[1:] // whose lines grow
	results := make(chan error, len(greedy))
	m.rounds.every, m.rounds.begun = time.Second, time.Now()
	for _, origin := range greedy {
		if _, err := rand.Read(noise); err != nil {
			t.Fatal(err)
		}
		text := hex.EncodeToString(noise)
		go func() { results <- put(t.Context(), m, origin, text) }()
	}
	honest := make(chan error, 1)
	go func() { honest <- put(t.Context(), m, logs[0], "third") }()
	if err := <-honest; err != nil {
		t.Errorf("the log that takes no more than others: %v", err)
	}
	refused := 0
	for range greedy {
		if err := <-results; errors.Is(err, errFull) {
			refused++
		} else if err != nil {
			t.Error(err)
		}
	}
	if refused == 0 {
		t.Errorf("there was room for all, %d bytes of %d", len(server.get(ShardName(logs[0])).BinaryData[keyLines]), maxShard)
	}
	if got := string(last(t, server, logs[0]).Checkpoint); got != "third" {
		t.Errorf("%q", got)
	}
}
