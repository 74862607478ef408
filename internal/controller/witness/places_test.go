package witness

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pipeguard/pipeguard/test/audit/witnesstest"
)

// Requests wait for their round. Those of one log, or copies of what it signed minutes ago, must not take the places of all others.
func TestALogWhoseRequestsWaitLeavesPlacesToOthers(t *testing.T) {
	p := newPlace(t, nil)
	p.all = newBucket(10*mostAsking, 1, time.Now)
	m := newAPI().memory()
	p.o.Memory = m
	greedy, other := witnesstest.NewNode(t, "win-1"), witnesstest.NewNode(t, "win-2")
	p.gives(t, greedy)
	p.gives(t, other)
	m.rounds.every, m.rounds.begun = 3*time.Second, time.Now() // shards of other logs have their rounds first
	body := witnesstest.Request(t, 0, greedy.Grow(1))
	ask := func(body string) int {
		w := httptest.NewRecorder()
		p.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/add-checkpoint", strings.NewReader(body)))
		return w.Code
	}
	answers := make(chan int, mostAsking)
	for range mostAsking {
		go func() { answers <- ask(body) }()
	}
	for end := time.Now().Add(2 * time.Second); len(p.asking)+len(answers) < mostAsking && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(200 * time.Millisecond) // until they wait, or were refused
	if status := ask(witnesstest.Request(t, 0, other.Grow(1))); status != http.StatusOK {
		t.Errorf("another log: %d, with %d places of %d taken: %v", status, len(p.asking), mostAsking, p.refusals())
	}
	cosigned := 0
	for range mostAsking {
		if <-answers == http.StatusOK {
			cosigned++
		}
	}
	if cosigned == 0 {
		t.Error("none of the log's own was answered")
	}
}
