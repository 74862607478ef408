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

	"github.com/pipeguard/pipeguard/internal/turns"
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
	body.WriteString("of another request")
	if _, err := d.Read(s, req, &body); !errors.Is(err, ErrTooLarge) || body.Len() != 0 {
		t.Errorf("%v, %q", err, body.String())
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

// sharing returns a desk that has bodies of the tenants of an address take turns. The first letter of a body is its tenant.
func sharing() *Desk {
	return New(Limits{Tenant: func(beginning []byte) turns.Sender { return turns.Sender{string(beginning[:1])} }})
}

func TestLargeBodiesOfTheTenantsOfAnAddressTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := sharing()
		body := func(tenant string) string { return strings.Repeat(tenant, 3*portion) }
		var many []*reading
		for range 5 {
			many = append(many, whole(d, "10.0.0.1", body("e")))
		}
		if got, want := d.String(), fmt.Sprintf("3 unread with 0 bytes, 2 judged, %d bytes in all", 4*portion); got != want {
			t.Fatalf("of one tenant: %s, want %s", got, want)
		}
		other, more := whole(d, "10.0.0.1", body("b")), whole(d, "10.0.0.1", body("c"))
		small, elsewhere := whole(d, "10.0.0.1", strings.Repeat("e", portion-1)), whole(d, "10.0.0.2", body("e"))
		if other.place == nil || more.over || small.place == nil || elsewhere.place == nil {
			t.Fatalf("another tenant %v, a third %t, a small body %v, another address %v", other.err, more.over, small.err, elsewhere.err)
		}
		next := func(left *reading, want ...*reading) {
			t.Helper()
			left.place.Leave()
			synctest.Wait()
			for _, r := range want {
				if r.place == nil || r.body.Len() != 3*portion {
					t.Errorf("%d bytes were read, and the place is %v", r.body.Len(), r.place)
				}
			}
		}
		next(many[0], many[2]) // which came before the third tenant's
		next(many[1], more)
		next(other, many[3])
		next(many[2], many[4])
		for _, r := range []*reading{more, many[3], many[4], small, elsewhere} {
			r.place.Leave()
		}
		if got := d.String(); got != empty {
			t.Error(got)
		}
	})
}

// announced sends a body whose length is announced.
func announced(d *Desk, address, text string) *reading {
	r := &reading{sender: newSender()}
	go func() {
		request := r.request(address)
		request.ContentLength = int64(len(text))
		r.place, r.err = d.Read(r.sender, request, &r.body)
		r.over = true
	}()
	synctest.Wait()
	r.send(text)
	r.end()
	synctest.Wait()
	return r
}

// What waits for long keeps only bodies of its own size waiting, and of those that are not huge none.
func TestALargeBodyThatWaitsToBeJudgedHoldsUpNoSmallerOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := sharing()
		body := func(tenant string, bytes int) string { return strings.Repeat(tenant, bytes) }
		var held []*reading
		for _, tenant := range []string{"a", "a", "b"} {
			r := announced(d, "10.0.0.1", body(tenant, huge+1))
			if r.place == nil {
				t.Fatal(r.err)
			}
			r.place.Wait()
			held = append(held, r)
		}
		last := announced(d, "10.0.0.1", body("c", huge+1))
		for range 5 {
			r := announced(d, "10.0.0.1", body("e", huge))
			if r.place == nil {
				t.Fatalf("a smaller one is not read: %v", r.err)
			}
			r.place.Wait()
			held = append(held, r)
		}
		if last.over {
			t.Errorf("a huge one is read beside %d others: %v", large, last.err)
		}
		held[0].place.Leave()
		synctest.Wait()
		if last.place == nil {
			t.Error("its turn did not come")
		}
		for _, r := range append(held[1:], last) {
			r.place.Leave()
		}
		if got := d.String(); got != empty {
			t.Error(got)
		}
	})
}

func TestTheTurnOfALargeBodyEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := sharing()
		beginning := strings.Repeat("e", portion)
		var slow []*reading
		for range large {
			r := begin(d, "10.0.0.1")
			r.send(beginning)
			slow = append(slow, r)
		}
		later(turnTime)
		for i, r := range slow[:large-1] {
			if !errors.Is(r.err, ErrSlow) {
				t.Errorf("body %d, of which only the beginning came: %v", i, r.err)
			}
		}
		slow[large-1].end()
		synctest.Wait()
		if slow[large-1].place == nil {
			t.Fatalf("the next had no turn: %v", slow[large-1].err)
		}
		slow[large-1].place.Leave()

		var held []*reading
		for range large - 1 {
			held = append(held, whole(d, "10.0.0.1", beginning))
		}
		waits := whole(d, "10.0.0.1", beginning+"e")
		later(waitForTurn)
		if !errors.Is(waits.err, ErrNoTurn) || Status(waits.err) != http.StatusServiceUnavailable || waits.body.Len() != portion {
			t.Errorf("%v, and %d bytes", waits.err, waits.body.Len())
		}
		for _, r := range held {
			r.place.Leave()
		}
		if got := d.String(); got != empty {
			t.Error(got)
		}
	})
}

func TestALargeBodyThatWaitsMakesRoomForThoseThatCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := sharing()
		d.limits.PerAddress = 1
		beginning := strings.Repeat("e", portion)
		held := []*reading{whole(d, "10.0.0.1", beginning), whole(d, "10.0.0.1", beginning)}
		waits := whole(d, "10.0.0.1", beginning)
		later(youth)
		small := whole(d, "10.0.0.1", "b")
		if !errors.Is(waits.err, ErrSlow) || small.place == nil {
			t.Errorf("the one that waits: %v; the one that came: %v", waits.err, small.err)
		}
		for _, r := range append(held, small) {
			r.place.Leave()
		}
		if got := d.String(); got != empty {
			t.Error(got)
		}
	})
}
