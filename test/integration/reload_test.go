//go:build !windows

package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/test/integration/cluster"
)

// answer is what somebody who creates a pod hears.
type answer struct {
	name string
	err  error
}

// loading is a load that goes on until it is stopped.
type loading struct {
	cancel context.CancelFunc
	hands  sync.WaitGroup

	mu      sync.Mutex // guards answers
	answers []answer
}

// load creates pods with several hands until it is stopped; each name is used once. It leaves the machine room to
// answer: it is about what the answers are, not about how many there can be. next gets a number and returns the pod.
func load(t *testing.T, hands int, next func(i int) client.Object) *loading {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	impatient := newClient(t, at(t).api.Config).Client
	l := &loading{cancel: cancel}
	for hand := range hands {
		l.hands.Go(func() {
			pace := time.NewTicker(40 * time.Millisecond)
			defer pace.Stop()
			for i := hand; ctx.Err() == nil; i += hands {
				<-pace.C
				o := next(i)
				o.SetName(fmt.Sprintf("load-%05d", i))
				err := impatient.Create(context.WithoutCancel(ctx), o, client.DryRunAll)
				l.mu.Lock()
				l.answers = append(l.answers, answer{o.GetName(), err})
				l.mu.Unlock()
			}
		})
	}
	t.Cleanup(func() { l.stop() })
	return l
}

// stop ends the load and returns all answers.
func (l *loading) stop() []answer {
	l.cancel()
	l.hands.Wait()
	return l.answers
}

// decided waits for some more answers that are decisions, for and against.
func (l *loading) decided(t *testing.T, admitted, denied int) {
	t.Helper()
	l.mu.Lock()
	from := len(l.answers)
	l.mu.Unlock()
	eventually(t, fmt.Sprintf("%d more are admitted and %d denied", admitted, denied), func(context.Context) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		yes, no := 0, 0
		for _, a := range l.answers[from:] {
			switch {
			case a.err == nil:
				yes++
			case !tooLate(a.err):
				no++
			}
		}
		if yes < admitted || no < denied {
			return fmt.Errorf("%d and %d of %d", yes, no, len(l.answers)-from)
		}
		return nil
	})
}

// ruled says whether an answer is a refusal by a rule with this code.
func ruled(err error, code string) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "\n"+code+": ")
}

// Two revisions alternate under load: with the first one the pod is admitted, with the second refused. Whichever
// decides, answer and revision must belong together, and no call may fail.
func TestPoliciesAreReplacedUnderLoadWithoutOneWrongAnswer(t *testing.T) {
	const rounds = 8
	ungoverned(t)
	release := guarded(t)
	mine := namespace(t, "mine", driver)
	p := pipePolicy("toggled", []v1alpha1.PipePattern{"csi-proxy-disk-v1"}, subject(mine))
	open := ready(t, p).Revision
	l := load(t, 4, func(int) client.Object { return pod(mine, driver, diskPipe) })

	closed := ""
	for round := range rounds {
		changed(t, p, func() { p.Spec.Subjects[0].ServiceAccounts = []string{[]string{"nobody", driver}[round%2]} })
		eventually(t, "the other revision decides", func(ctx context.Context) error {
			now, err := revision(ctx, release.Replicas[0])
			if err != nil {
				return err
			}
			if round == 0 && now != open {
				closed = now
			}
			if want := []string{closed, open}[round%2]; now != want || want == "" {
				return fmt.Errorf("it is still %s", now)
			}
			return nil
		})
		l.decided(t, 4*(round%2), 4*(1-round%2)) // more than were on their way when it changed
	}
	answers := l.stop()

	// The API server's audit log has the revision of every answer.
	type audited struct{ effect, codes, revision string }
	effects := map[string]audited{}
	eventually(t, "the audit log has every answer", func(context.Context) error {
		events, err := at(t).api.Audit.Events(func(e *cluster.AuditEvent) bool { return e.ObjectRef != nil && e.ObjectRef.Namespace == mine })
		if err != nil {
			return err
		}
		for _, e := range events {
			note := func(key string) string { return e.Annotations["pods.pipeguard.dev/"+key] }
			effects[e.ObjectRef.Name] = audited{note("effect"), note("codes"), note("revision")}
		}
		if len(effects) < len(answers) {
			return fmt.Errorf("%d of %d", len(effects), len(answers))
		}
		return nil
	})
	admitted, denied, late := 0, 0, 0
	for _, a := range answers {
		switch e := effects[a.name]; {
		case tooLate(a.err):
			late++
		case a.err == nil && e.revision == open && (e.effect == "allow" || e.codes == policy.CodeAdviceFailed): // advice was too late
			admitted++
		case ruled(a.err, "PG010") && e.revision == closed && e.effect == "deny" && strings.Contains(a.err.Error(), closed[:19]):
			denied++
		default:
			t.Errorf("%s: audited as %q, answered %v", a.name, e, a.err)
		}
	}
	if admitted < rounds || denied < rounds {
		t.Errorf("%d admitted, %d denied, %d too late: the test says little", admitted, denied, late)
	}
	t.Logf("%d admitted, %d denied, %d too late over %d changes", admitted, denied, late, rounds)
}

// parameterized has the site's release decide by other parameters until the test is over. They come from a file, as the kubelet changes it.
func parameterized(t *testing.T, text string) {
	t.Helper()
	ungoverned(t) // after which it decides by those of before
	release := guarded(t)
	before, err := os.ReadFile(release.Parameters)
	if err != nil {
		t.Fatal(err)
	}
	base, err := revision(t.Context(), release.Replicas[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := release.SetParameters(string(before)); err != nil {
			t.Error(err)
		}
	})
	if err := release.SetParameters(text); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the parameters decide", func(ctx context.Context) error {
		now, err := revision(ctx, release.Replicas[0])
		if err == nil && now == base {
			err = errors.New("those of before do")
		}
		return err
	})
}

func TestParametersAreReplacedWhileItRuns(t *testing.T) {
	guarded(t)
	others := namespace(t, "others", driver)
	refused(t, at(t).api.Client.Create(t.Context(), pod(others, driver, pipe)), "PG001")
	parameterized(t, parameters+"  "+others+": {}\n")
	created(t, pod(others, driver, pipe))
}
