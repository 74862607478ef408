package wmi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPoolAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, s := start(t, Options{})
		found, err := p.Query(t.Context(), Query{Namespace: CIMv2, Class: "Quick", Select: []string{"P"}})
		want := []Instance{{Namespace: CIMv2, Path: "Quick=@", Properties: map[string]any{"WQL": "SELECT P, __PATH FROM Quick", "Names": 1}}}
		if diff := cmp.Diff(want, found); diff != "" || err != nil {
			t.Error(diff, err)
		}
		synctest.Wait() // a worker that has just answered is not idle yet
		got, err := p.Call(t.Context(), Call{Namespace: CIMv2, Class: "Quick", Method: "M", In: map[string]any{"B": true, "A": 1}})
		if got.Return != 7 || err != nil {
			t.Error(got, err)
		}
		if diff := cmp.Diff([]parameter{{"A", int64(1)}, {"B", true}}, s.given, cmp.AllowUnexported(parameter{})); diff != "" {
			t.Error(diff)
		}
		if opened, closed, _ := s.counts(); opened != 1 || closed != 0 {
			t.Errorf("%d sessions were opened and %d closed", opened, closed)
		}
	})
}

func TestPoolRefusesBeforeAnythingIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, s := start(t, Options{})
		ended, end := context.WithCancel(t.Context())
		end()
		good := Query{Namespace: CIMv2, Class: "Quick"}
		for name, err := range map[string]error{
			"a bad query":       second(p.Query(t.Context(), Query{Namespace: CIMv2, Class: "C'"})),
			"a bad association": second(p.Associated(t.Context(), Instance{Namespace: CIMv2}, Association{"A", "B"})),
			"a bad call":        second(p.Call(t.Context(), Call{Namespace: CIMv2, Class: "C", Method: "M()"})),
			"a bad parameter":   second(p.Call(t.Context(), Call{Namespace: CIMv2, Class: "C", Method: "M", In: map[string]any{"P": 1.5}})),
			"an ended context":  second(p.Query(ended, good)),
		} {
			if err == nil {
				t.Errorf("%s was taken", name)
			}
		}
		if err := second(p.Call(ended, Call{Namespace: CIMv2, Class: "C", Method: "M"})); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "never begun") || errors.Is(err, ErrOutcome) {
			t.Error(err)
		}
		if opened, _, _ := s.counts(); opened != 0 {
			t.Error("a session was opened")
		}
	})
}

func second[T any](_ T, err error) error { return err }

func TestPoolNamesWhatFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := start(t, Options{})
		err := second(p.Query(t.Context(), Query{Namespace: CIMv2, Class: "Unknown"}))
		var answer *Error
		if !errors.As(err, &answer) || answer.Op != "query" || answer.What != "Unknown" || !errors.Is(err, errors.ErrUnsupported) {
			t.Error(err)
		}
	})
}

func TestAProviderThatIsGivenASecretHasNoSay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, s := start(t, Options{})
		for value, says := range map[any]string{"hunter2": "wrong: hunter2", Secret("hunter2"): "", Secret(""): ""} {
			err := second(p.Call(t.Context(), Call{Namespace: CIMv2, Class: "C", Method: "Echo", In: map[string]any{"P": value, "Q": "x"}}))
			answer, ok := errors.AsType[*Error](err)
			if !ok || answer.Text != says || !errors.Is(err, ErrOutcome) {
				t.Errorf("%T: %q, %v", value, answer.Text, err)
			}
			if err.Error() != "call C.Echo: after, its outcome is not known: 0x80041001 (WBEM_E_FAILED)" {
				t.Error(err)
			}
			if value == Secret("hunter2") && s.given[0].value != "hunter2" {
				t.Error("it was not given the secret")
			}
		}
	})
}

func TestPoolBoundsWhatRunsAndWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, s := start(t, Options{Workers: 3, Queue: 5})
		var done []<-chan error
		for i := range 8 {
			done = append(done, ask(t.Context(), p, fmt.Sprintf("Deaf_%d", i)))
			synctest.Wait()
		}
		if diff := cmp.Diff(Stats{Waiting: 5, Running: 3}, p.Stats()); diff != "" {
			t.Error(diff)
		}
		for range 3 {
			if err := second(p.Query(t.Context(), Query{Namespace: CIMv2, Class: "Quick"})); !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "never begun") {
				t.Error(err)
			}
		}
		s.letGo()
		for _, ended := range done {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		if s.most != 3 || s.opened != 3 || !slices.IsSorted(s.begun[:4]) || len(s.begun) != 8 {
			t.Errorf("%d at a time, %d sessions, in the order %v", s.most, s.opened, s.begun)
		}
		synctest.Wait()
		if diff := cmp.Diff(Stats{}, p.Stats()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestPoolServesEveryCallOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, s := start(t, Options{Workers: 4, Queue: 1000})
		var done []<-chan error
		for range 400 {
			done = append(done, ask(t.Context(), p, "Slow"), act(t.Context(), p, "Quick"))
		}
		for _, ended := range done {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		if s.most > 4 || s.opened > 4 || len(s.begun) != 800 {
			t.Errorf("%d at a time, %d sessions, %d begun", s.most, s.opened, len(s.begun))
		}
	})
}

func TestCallWhoseTurnHasNotComeIsNeverBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, s := start(t, Options{Workers: 1})
		first := act(t.Context(), p, "Deaf")
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := <-act(ctx, p, "Quick")
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrOutcome) || !strings.Contains(err.Error(), "call Quick.M: never begun") {
			t.Error(err)
		}
		s.letGo()
		if err := <-first; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if s.begunOf("Quick") != 0 {
			t.Error("it was begun after its caller had gone")
		}
	})
}

func TestCallThatHasBegunGoesOnWithoutItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, s := start(t, Options{Workers: 1})
		ctx, cancel := context.WithCancel(t.Context())
		done := act(ctx, p, "Slow")
		synctest.Wait()
		cancel()
		err := <-done
		if !errors.Is(err, context.Canceled) || !errors.Is(err, ErrOutcome) || !strings.Contains(err.Error(), "goes on") {
			t.Error(err)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !slices.Equal(s.left, []string{"Slow"}) || s.begunOf("Slow") != 1 {
			t.Error(s.begun, s.left)
		}
		if err := <-act(t.Context(), p, "Quick"); err != nil {
			t.Error(err)
		}
	})
}

func TestReadEndsWithItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, s := start(t, Options{Workers: 1})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := <-ask(ctx, p, "Reader"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		synctest.Wait()
		if opened, _, running := s.counts(); opened != 1 || running != 0 {
			t.Errorf("%d run, over %d sessions", running, opened)
		}
	})
}

func TestPoolGoesOnAfterAPanic(t *testing.T) {
	for class, says := range map[string]string{"Panic": "panic (string)", "Index": "index out of range"} {
		t.Run(class, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, s := start(t, Options{Workers: 1})
				s.panicAtClose = true
				err := <-act(t.Context(), p, class)
				if !errors.Is(err, ErrOutcome) || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hunter2") {
					t.Error(err)
				}
				if err := <-act(t.Context(), p, "Quick"); err != nil {
					t.Error(err)
				}
				if opened, closed, _ := s.counts(); opened != 2 || closed != 1 {
					t.Errorf("%d sessions were opened and %d closed", opened, closed)
				}
			})
		})
	}
}

func TestPoolOpensAnotherSessionWhenOneWasRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, s := start(t, Options{Workers: 1})
		s.refuseOpen = &Error{Op: "open", What: "COM", Code: 0x80070005}
		err := <-act(t.Context(), p, "Quick")
		if !errors.Is(err, s.refuseOpen) || !strings.Contains(err.Error(), "never begun") {
			t.Error(err)
		}
		s.mu.Lock()
		s.refuseOpen = nil
		s.mu.Unlock()
		if err := <-act(t.Context(), p, "Quick"); err != nil {
			t.Error(err)
		}
	})
}

func TestOptionsAreChecked(t *testing.T) {
	_, err := newPool(Options{Workers: -1, Queue: 10_001, MaxResults: -1, Stuck: -1, MaxStuck: 65, CloseWait: -1}, nil)
	if err == nil {
		t.Fatal("taken")
	}
	for _, name := range []string{"Workers is -1", "Queue is 10001", "MaxResults is -1", "Stuck is negative", "MaxStuck is 65", "CloseWait is negative"} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%q does not say %q", err, name)
		}
	}
	o, err := Options{}.complete()
	if err != nil || o.Workers != 4 || o.MaxResults != 10_000 || o.Stuck != 2*time.Minute || o.MaxStuck != 4 {
		t.Error(o, err)
	}
}
