package intake

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// sender is a request's body and its connection: what was sent is read, and a read ends at the deadline.
type sender struct {
	http.ResponseWriter

	mu     sync.Mutex // guards the rest
	sent   bytes.Buffer
	ended  bool
	change chan struct{} // closed when something changes
	until  time.Time
}

func newSender() *sender {
	return &sender{ResponseWriter: httptest.NewRecorder(), change: make(chan struct{})}
}

func (s *sender) changed(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
	close(s.change)
	s.change = make(chan struct{})
}

func (s *sender) send(text string) { s.changed(func() { s.sent.WriteString(text) }) }
func (s *sender) end()             { s.changed(func() { s.ended = true }) }

func (s *sender) SetReadDeadline(t time.Time) error {
	s.changed(func() { s.until = t })
	return nil
}

func (s *sender) Read(p []byte) (int, error) {
	for {
		s.mu.Lock()
		n, _ := s.sent.Read(p)
		ended, change, until := s.ended, s.change, s.until
		s.mu.Unlock()
		switch {
		case n > 0:
			return n, nil
		case ended:
			return 0, io.EOF
		}
		wait := time.Until(until)
		if wait <= 0 {
			return 0, os.ErrDeadlineExceeded
		}
		select {
		case <-change:
		case <-time.After(wait):
		}
	}
}

func (s *sender) request(address string) *http.Request {
	req := httptest.NewRequest(http.MethodPost, "/", s) //nolint:noctx // nothing waits for it
	req.RemoteAddr = address + ":40000"
	return req
}

// reading is a body that a desk reads.
type reading struct {
	*sender
	body  bytes.Buffer
	place *Place
	err   error
	over  bool
}

func begin(d *Desk, address string) *reading {
	r := &reading{sender: newSender()}
	go func() {
		r.place, r.err = d.Read(r.sender, r.request(address), &r.body)
		r.over = true
	}()
	synctest.Wait()
	return r
}

// whole sends a body at once.
func whole(d *Desk, address, text string) *reading {
	r := begin(d, address)
	r.send(text)
	r.end()
	synctest.Wait()
	return r
}

func later(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

const empty = "0 unread with 0 bytes, 0 judged, 0 bytes in all"

func TestAPlaceIsTakenByABodyThatIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := New(Limits{Places: 2})
		slow := begin(d, "10.0.0.1")
		slow.send("half")
		first, second := whole(d, "10.0.0.2", "one"), whole(d, "10.0.0.2", "two")
		if first.err != nil || second.err != nil || first.body.String() != "one" {
			t.Fatalf("%v, %v, %q", first.err, second.err, first.body.String())
		}
		if third := whole(d, "10.0.0.2", "three"); !errors.Is(third.err, ErrBusy) {
			t.Errorf("a third body: %v", third.err)
		}
		first.place.Leave()
		slow.end()
		synctest.Wait()
		if slow.err != nil || slow.body.String() != "half" {
			t.Errorf("%v, %q", slow.err, slow.body.String())
		}
		slow.place.Leave()
		second.place.Leave()
		if d.String() != empty {
			t.Error(d)
		}
	})
}

func TestABodyThatComesTooSlowlyIsGivenUp(t *testing.T) {
	for name, c := range map[string]struct {
		each  string
		pause time.Duration
		at    time.Duration
	}{
		"nothing comes":          {"", time.Second, portionTime},
		"a byte every second":    {"x", time.Second, portionTime},
		"just below the rate":    {strings.Repeat("x", portion/3), portionTime / 2, portionTime},
		"at the rate, and large": {strings.Repeat("x", portion), portionTime - time.Millisecond, totalTime},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := New(Limits{})
				r, start := begin(d, "10.0.0.1"), time.Now()
				for !r.over && time.Since(start) < time.Minute {
					r.send(c.each)
					later(c.pause)
				}
				if took := time.Since(start); !errors.Is(r.err, ErrSlow) || took < c.at || took > c.at+c.pause {
					t.Errorf("%v after %v, want the end at %v", r.err, took, c.at)
				}
				if d.String() != empty {
					t.Error(d)
				}
			})
		})
	}
}

func TestOldBodiesMakeRoomForNewOnes(t *testing.T) {
	for name, address := range map[string]func(i int) string{
		"of one address":     func(int) string { return "10.0.0.9" },
		"of four addresses":  func(i int) string { return fmt.Sprintf("10.0.0.%d", i%4) },
		"of as many as fit":  func(i int) string { return fmt.Sprintf("10.0.0.%d", i) },
		"of the same sender": func(int) string { return "10.0.0.1" },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := New(Limits{Unread: 16, PerAddress: 16})
				var slow []*reading
				for i := range 16 {
					slow = append(slow, begin(d, address(i)))
				}
				if r := whole(d, "10.0.0.1", "early"); !errors.Is(r.err, ErrBusy) {
					t.Errorf("while all are young: %v", r.err)
				}
				later(youth)
				for i := range 8 {
					r := whole(d, "10.0.0.1", "body")
					if r.err != nil {
						t.Fatalf("%d: %v", i, r.err)
					}
					r.place.Leave()
				}
				if !slow[0].over || !errors.Is(slow[0].err, ErrSlow) {
					t.Errorf("the oldest: %t, %v", slow[0].over, slow[0].err)
				}
				later(time.Minute)
				if d.String() != empty {
					t.Error(d)
				}
			})
		})
	}
}

func TestOneAddressHasAShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := New(Limits{Unread: 16, PerAddress: 4})
		for range 4 {
			begin(d, "10.0.0.9")
		}
		if r := begin(d, "10.0.0.9"); !errors.Is(r.err, ErrBusy) {
			t.Errorf("the fifth of one address: %v", r.err)
		}
		if r := whole(d, "10.0.0.1", "body"); r.err != nil {
			t.Errorf("another address: %v", r.err)
		}
		later(time.Minute)
	})
}

func TestBytesThatWaitAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const budget = 8 * portion
		d := New(Limits{Unread: 100, PerAddress: 100, UnreadBytes: budget, Held: 2 * budget})
		var slow []*reading
		for i := range 20 {
			r := begin(d, fmt.Sprintf("10.0.1.%d", i))
			r.send(strings.Repeat("x", portion+portion/2))
			slow = append(slow, r)
			later(youth / 4)
			if d.pending > budget || d.held > 2*budget {
				t.Fatalf("after %d: %s", i, d)
			}
		}
		later(youth)
		if r := whole(d, "10.0.0.1", strings.Repeat("y", 3*portion)); r.err != nil || r.body.Len() != 3*portion {
			t.Errorf("a large body: %v", r.err)
		} else {
			r.place.Leave()
		}
		later(time.Minute)
		for i, r := range slow {
			if !r.over || r.err == nil {
				t.Errorf("%d: %t, %v", i, r.over, r.err)
			}
		}
		if d.String() != empty {
			t.Error(d)
		}
	})
}

// TestASmallBodyIsReadWhateverLargeOnesHold holds that bodies that are there are not turned away for those that may never be.
func TestASmallBodyIsReadWhateverLargeOnesHold(t *testing.T) {
	const budget = 8 * portion
	for name, limits := range map[string]Limits{
		"of those that are being read": {Unread: 100, PerAddress: 100, UnreadBytes: budget, Held: 4 * budget},
		"of all":                       {Unread: 100, PerAddress: 100, UnreadBytes: budget, Held: budget},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := New(limits)
				for i := range 20 {
					begin(d, fmt.Sprintf("10.0.1.%d", i)).send(strings.Repeat("x", 2*portion))
				}
				synctest.Wait()
				if r := whole(d, "10.0.1.99", strings.Repeat("x", 2*portion)); !errors.Is(r.err, ErrBusy) { // all are young
					t.Errorf("another large body: %v", r.err)
				}
				for _, length := range []int{1, portion / 2, portion - 1} {
					r := whole(d, "10.0.0.1", strings.Repeat("y", length))
					if r.err != nil || r.body.Len() != length {
						t.Fatalf("%d bytes: %v", length, r.err)
					}
					r.place.Leave()
				}
				later(time.Minute)
				if d.String() != empty {
					t.Error(d)
				}
			})
		})
	}
}

func TestOfALargeBodyTheBeginningIsKept(t *testing.T) {
	for name, c := range map[string]struct {
		length int
		err    error
		kept   int
	}{
		"exactly what is kept": {3 * portion, nil, 3 * portion},
		"a byte more":          {3*portion + 1, ErrTooLarge, 3 * portion},
		"all that is read":     {8 * portion, ErrTooLarge, 3 * portion},
		"more than is read":    {20 * portion, ErrTooLarge, 3 * portion},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := New(Limits{Keep: 3 * portion, Read: 8 * portion})
				r := whole(d, "10.0.0.1", strings.Repeat("x", c.length))
				if !errors.Is(r.err, c.err) || r.body.Len() != c.kept {
					t.Errorf("%v, %d bytes", r.err, r.body.Len())
				}
				if r.err == nil {
					r.place.Leave()
				}
				if d.String() != empty {
					t.Error(d)
				}
			})
		})
	}
}

func TestALengthThatIsOnlyAnnouncedTakesNothing(t *testing.T) {
	d := New(Limits{})
	s := newSender()
	s.end()
	req := s.request("10.0.0.1")
	req.ContentLength = 3 << 20
	var body bytes.Buffer
	if _, err := d.Read(s, req, &body); err != nil || body.Cap() > portion {
		t.Errorf("%v, %d bytes", err, body.Cap())
	}
	req.ContentLength = 1 << 40
	if _, err := d.Read(s, req, &body); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
}

func TestAHandlerHearsOfWholeBodiesOnly(t *testing.T) {
	d := New(Limits{Keep: 4})
	heard := ""
	h := d.Handler(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		text, err := io.ReadAll(req.Body)
		heard = fmt.Sprintf("%s %v", text, err)
	}))
	for body, want := range map[string]int{"four": 200, "large": 413} {
		heard = ""
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body)))
		if w.Code != want || (heard == "four <nil>") != (want == http.StatusOK) {
			t.Errorf("%s: status %d, heard %q", body, w.Code, heard)
		}
	}
	if d.String() != empty {
		t.Error(d)
	}
}

func TestOneAddressDoesNotTakeAllPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := New(Limits{})
		var taken []*reading
		for range 270 {
			if r := whole(d, "10.0.0.9", "body"); r.err == nil {
				taken = append(taken, r)
			} else if !errors.Is(r.err, ErrBusy) {
				t.Fatal(r.err)
			}
		}
		if len(taken) != 264 {
			t.Errorf("one address has %d places, want 264", len(taken))
		}
		for i := range 16 {
			r := whole(d, "10.0.0.1", "body")
			if r.err != nil {
				t.Fatalf("place %d of another: %v", i, r.err)
			}
			taken = append(taken, r)
		}
		for _, r := range taken {
			r.place.Leave()
		}
		if d.String() != empty || len(d.judged) != 0 {
			t.Error(d, d.judged)
		}
	})
}
