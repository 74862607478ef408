package query

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func storyLine(seq int, kind, stage, id, conn string) string {
	return fmt.Sprintf(`{"v":1,"seq":%d,"type":%q,"stage":%q,"time":"2026-03-01T12:00:00Z","session":"s","id":%q,"corr":{"conn":%q}}`, seq, kind, stage, id, conn)
}

func TestAStoryHasBothStagesTheConnectionAndNeighbours(t *testing.T) {
	in := strings.Join([]string{
		storyLine(1, "request", "ResponseComplete", "before2", "c9"),
		storyLine(2, "request", "ResponseComplete", "before1", "c9"),
		storyLine(3, "request", "RequestReceived", "x", "c1"),
		storyLine(4, "request", "ResponseComplete", "between", "c9"),
		"no record",
		storyLine(5, "request", "ResponseComplete", "x", "c1"),
		storyLine(6, "connection", "ConnectionClosed", "x", "c9"), // another connection, of the same id as the request
		storyLine(7, "request", "ResponseComplete", "after", "c9"),
		storyLine(8, "connection", "ConnectionClosed", "c1", "c1"),
		storyLine(9, "connection", "ConnectionClosed", "c1", "c1"), // a second one is not believed
	}, "\n") + "\n"
	s, err := Tell(newLines("x", strings.NewReader(in)).all(nil), "x", 1)
	if err != nil {
		t.Fatal(err)
	}
	numbers := func(list []Record) (all []uint64) {
		for _, r := range list {
			all = append(all, r.Seq)
		}
		return all
	}
	got := fmt.Sprint(numbers(s.Before), numbers(s.Records), numbers(s.After), s.Connection.Seq, s.Bad)
	if want := "[2] [3 5] [6] 8 1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if string(s.Records[0].Raw) != storyLine(3, "request", "RequestReceived", "x", "c1") {
		t.Errorf("the line was not kept: %s", s.Records[0].Raw)
	}
	if _, err := Tell(newLines("x", strings.NewReader(in)).all(nil), "c1", 1); !errors.Is(err, ErrNotFound) {
		t.Errorf("a connection is a request: %v", err)
	}
}

func TestARingKeepsTheLast(t *testing.T) {
	for _, size := range []int{-1, 0, 1, 3, 10} {
		r := NewRing(size)
		for i := 1; i <= 5; i++ {
			record := Record{Raw: []byte{byte(i)}}
			r.Add(record)
			record.Raw[0] = 99 // the line is gone by now
		}
		got := r.Records()
		if len(got) != min(max(size, 0), 5) || len(got) > 0 && got[len(got)-1].Raw[0] != 5 {
			t.Errorf("of %d: %v", size, got)
		}
	}
}
