package evidence

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestAWitnessTakesNoCheckpointOfAnotherTime(t *testing.T) {
	for off, isTaken := range map[time.Duration]bool{
		-20 * 365 * 24 * time.Hour: false, -ClockTolerance - time.Second: false, -ClockTolerance: true, 0: true, ClockTolerance: true,
		ClockTolerance + time.Second: false, 200 * 365 * 24 * time.Hour: false,
	} {
		r := newRepeated(t)
		r.at = r.at.Add(off)
		status, text, isStored := r.asks(0, r.signed(r.log[0]))
		if isTaken != isStored || isTaken != (status == http.StatusOK) || !isTaken && (status != http.StatusForbidden || string(text) != "2026-11-21T12:00:00Z\n") {
			t.Errorf("%s: %d %q, stored: %t", off, status, text, isStored)
		}
	}
}

// What was cosigned is good for a while, and then shows nothing any more, to anybody.
func TestWhatWasCosignedLongAgoIsNotAnswered(t *testing.T) {
	r := newRepeated(t)
	first := r.signed(r.log[0])
	r.takes(0, first)
	r.now = r.now.Add(ClockTolerance + time.Second)
	if status, _, isStored := r.asks(1, first); status != http.StatusForbidden || isStored || r.old != 0 {
		t.Errorf("%d, stored: %t", status, isStored)
	}
	r.at = r.now
	r.takes(1, r.signed(r.log[0]))
}

// Both clocks were ahead, and were put right. What was cosigned then must not stand before all that is signed until then.
func TestAMemoryFromTheFutureIsReplaced(t *testing.T) {
	r := newRepeated(t)
	right := r.at
	r.at, r.now = right.AddDate(20, 0, 0), right.AddDate(20, 0, 0)
	r.takes(0, r.signed(r.log[0]))
	r.at, r.now = right, right
	r.takes(1, r.signed(r.log[0]))
}

func TestAClientIsToldThatClocksDiffer(t *testing.T) {
	w := newWatched(t)
	w.begin(0)
	first := w.grown(3)
	w.clock = w.clock.Add(ClockTolerance + time.Second)
	err := w.client(t).Send(t.Context(), first)
	if !errors.Is(err, ErrWitnessClock) || errors.Is(err, ErrWitnessAhead) || errors.Is(err, ErrWitnessRefuses) || !strings.Contains(err.Error(), "it is 2026-11-21T12:10:01Z for the witness") {
		t.Errorf("%v", err)
	}
	if got := w.refused; len(got) != 1 || got[0] != RefusedTime {
		t.Errorf("told of %v", got)
	}
}

func TestARefusalWithoutATimeSaysNothingOfClocks(t *testing.T) {
	w := newWatched(t)
	w.begin(0)
	sent := w.grown(3)
	for kind, text := range map[string]string{"text/plain": "2026-11-21T12:00:00Z\n", clockType: "who knows\n"} {
		other := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
			out.Header().Set("Content-Type", kind)
			http.Error(out, text, http.StatusForbidden)
		}))
		t.Cleanup(other.Close)
		c, err := NewClient(ClientOptions{URL: other.URL, Key: w.witness.WitnessKey()})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Send(t.Context(), sent); err == nil || errors.Is(err, ErrWitnessClock) || !strings.Contains(err.Error(), "403") {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// A log that reached no witness for hours, for want of a connection or of the witness, sends what it signs then and not what it had signed.
func TestALogThatWasCutOffForHoursIsCosignedAtOnce(t *testing.T) {
	w := newWatched(t)
	w.begin(0)
	client := w.client(t)
	whole := w.server.Config.Handler
	var isAway bool
	w.server.Config.Handler = http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if isAway {
			http.Error(out, "away", http.StatusServiceUnavailable)
			return
		}
		whole.ServeHTTP(out, r)
	})
	if err := client.Send(t.Context(), w.grown(3)); err != nil {
		t.Fatal(err)
	}
	for _, grows := range []int{0, 5} {
		isAway = true
		for range 5 {
			w.clock = w.clock.Add(time.Hour)
			if err := client.Send(t.Context(), w.grown(grows)); err == nil {
				t.Error("cosigned by nobody")
			}
		}
		isAway = false
		w.clock = w.clock.Add(time.Minute)
		if err := client.Send(t.Context(), w.grown(0)); err != nil {
			t.Errorf("%d records an hour: %v", grows, err)
		}
	}
	if len(w.refused) > 0 {
		t.Errorf("refused: %v", w.refused)
	}
}

// Another address answers for no witness, and is not asked: it need not have the witness's certificate.
func TestAClientFollowsNoRedirect(t *testing.T) {
	w := newWatched(t)
	w.begin(0)
	asked := 0
	elsewhere := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		asked++
		out.Header().Set("Content-Type", "text/x.tlog.size")
		out.WriteHeader(http.StatusConflict)
		_, _ = out.Write([]byte("5000\n"))
	}))
	t.Cleanup(elsewhere.Close)
	for _, status := range []int{http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		w.server.Config.Handler = http.RedirectHandler(elsewhere.URL, status)
		err := w.client(t).Send(t.Context(), w.grown(1))
		if err == nil || errors.Is(err, ErrWitnessAhead) || asked > 0 {
			t.Errorf("%d: %v, and the other was asked %d times", status, err, asked)
		}
	}
}
