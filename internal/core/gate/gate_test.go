package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/core/access"
)

// script is a session, its rules and its recorder. Each says what is written there, and notes that it was asked.
type script struct {
	first, second answers // before and after the wait
	waits         bool
	enter, gone   bool // no place in the queue; the caller has ended
	charge        bool // beyond the limits
	intend        bool // the intent is not durable
	fails         bool // what is carried out fails
	panics        string

	steps   []string
	round   int
	permits []string // of the last decision
}

// answers are those of one round.
type answers struct {
	proof   bool // the token is refused
	list    string
	roles   string
	refuses bool // the judge
}

var errStep = errors.New("no")

type withoutToken struct{}

func (s *script) step(name string, fails bool) error {
	s.steps = append(s.steps, name)
	if s.panics == name {
		panic(name)
	}
	if fails {
		return fmt.Errorf("%s: %w", name, errStep)
	}
	return nil
}

func (s *script) now() answers {
	if s.round > 1 {
		return s.second
	}
	return s.first
}

func (s *script) Authenticate(ctx context.Context) (context.Context, error) {
	s.round++
	if ctx.Value(withoutToken{}) != nil {
		return nil, errors.New("asked about a token that was taken out")
	}
	if err := s.step("authenticate", s.now().proof); err != nil {
		return nil, err
	}
	return context.WithValue(ctx, withoutToken{}, s.round), nil
}

func (s *script) Question() access.Call              { return access.Call{Group: "g"} }
func (s *script) Charge(access.Decision) error       { return s.step("charge", s.charge) }
func (s *script) RecordIntent(context.Context) error { return s.step("intend", s.intend) }
func (s *script) Alive() error                       { return s.step("alive", s.gone) }
func (s *script) Open()                              { _ = s.step("open", false) }

func (s *script) Rules() Rules {
	r := Rules{List: s, RequestPolicy: s}
	if s.now().roles != "" {
		r.Roles = s
	}
	return r
}

func (s *script) Decide(c access.Call) access.Decision {
	_ = s.step("list", false)
	d := access.Decision{Effect: access.Deny, Mode: access.Enforce, Reason: "list", Permits: []string{"Reformat"}}
	switch s.now().list {
	case "allow":
		d.Allowed, d.Effect, d.Named = c.Group == "g", access.Allow, true
	case "allow, LogOnly":
		d.Allowed, d.Effect, d.Mode = c.Group == "g", access.Allow, access.LogOnly
	case "deny, LogOnly":
		d.Allowed, d.Mode = true, access.LogOnly
	}
	return d
}

func (s *script) Grant(context.Context) (string, string, bool) {
	_ = s.step("roles", false)
	return "roles/x", ", nor roles", s.now().roles == "allow"
}

func (s *script) EvaluatePolicy(context.Context) *Refusal {
	if err := s.step("judge", s.now().refuses); err != nil {
		return &Refusal{Reason: "judge"}
	}
	return nil
}

func (s *script) Enter(ctx context.Context) (func(), bool, error) {
	if ctx.Value(withoutToken{}) == nil {
		panic("the token is not taken out")
	}
	if err := s.step("enter", s.enter); err != nil {
		return nil, false, err
	}
	return func() { _ = s.step("leave", false) }, s.waits, nil
}

func (s *script) RecordDecision(d access.Decision, byRoles bool) {
	if byRoles && (d.Named || len(d.Permits) > 0 || d.Effect != access.Allow) {
		panic("roles permit more than the call")
	}
	s.permits = d.Permits
}

func (s *script) Deny(r Refusal) error {
	_ = s.step("deny "+r.Reason, false)
	return errStep
}

func (s *script) WouldDeny(r Refusal) { _ = s.step("would deny "+r.Reason, false) }

func (s *script) End(_ context.Context, err error) error {
	_ = s.step("end", false)
	return err
}

func (s *script) RecordPanic(any) error {
	s.steps = append(s.steps, "panicked")
	return errStep
}

func (s *script) run() error {
	return Pass(context.Background(), s, s, func(ctx context.Context) error {
		if ctx.Value(withoutToken{}) != s.round {
			panic("it runs by what was proven before the wait")
		}
		return s.step("act", s.fails)
	})
}

// allows is what a round of answers comes to, said in another way.
func (a answers) allows() bool {
	switch {
	case a.proof:
		return false
	case strings.HasSuffix(a.list, "LogOnly"): // lets everything pass
		return true
	}
	return (a.list == "allow" || a.roles == "allow") && !a.refuses
}

func rounds() (all []answers) {
	for _, list := range []string{"allow", "deny", "allow, LogOnly", "deny, LogOnly"} {
		for _, roles := range []string{"", "allow", "deny"} {
			for bits := range 4 {
				all = append(all, answers{bits&1 != 0, list, roles, bits&2 != 0})
			}
		}
	}
	return all
}

// Every call that could be, with every fault at once: it runs exactly if nothing speaks against it, and has one end.
func TestACallRunsExactlyIfAllAgree(t *testing.T) {
	ran, calls := 0, 0
	for _, first := range rounds() {
		for _, second := range rounds() {
			for bits := range 1 << 6 {
				on := func(n int) bool { return bits>>n&1 != 0 }
				s := &script{first: first, second: second, waits: on(0), enter: on(1), gone: on(2), charge: on(3), intend: on(4), fails: on(5)}
				err := s.run()
				want := first.allows() && !s.charge && !s.enter && (!s.waits || second.allows()) && !s.gone && !s.intend
				at := slices.Index(s.steps, "act")
				if (at >= 0) != want || (err == nil) != (want && !s.fails) {
					t.Fatalf("%+v: it ran: %v, want %v; %v", s, at >= 0, want, err)
				}
				if s.steps[0] != "open" || s.steps[len(s.steps)-1] != "end" || count(s.steps, "end") != 1 || count(s.steps, "charge") > 1 {
					t.Fatalf("%q", s.steps)
				}
				if entered := count(s.steps, "enter") == 1 && !s.enter; entered != (count(s.steps, "leave") == 1) {
					t.Fatalf("its place is not given back: %q", s.steps)
				}
				if calls++; want {
					ran++
					if s.steps[at-1] != "intend" || s.steps[at-2] != "alive" || s.steps[at+1] != "leave" {
						t.Fatalf("%q", s.steps)
					}
				}
			}
		}
	}
	if ran < 1_000 || ran > calls/2 {
		t.Errorf("%d of %d calls ran: too few of one kind to prove anything", ran, calls)
	}
}

func count(list []string, step string) (n int) {
	for _, s := range list {
		if s == step {
			n++
		}
	}
	return n
}

func TestAPanicAnywhereEndsACallOnce(t *testing.T) {
	allowed := answers{list: "deny", roles: "allow"}
	for _, step := range []string{"open", "authenticate", "list", "roles", "charge", "judge", "enter", "alive", "intend", "act", "leave"} {
		s := &script{first: allowed, second: allowed, waits: true, panics: step}
		if err := s.run(); err == nil || count(s.steps, "panicked") != 1 || count(s.steps, "end") != 0 {
			t.Errorf("%s: %v, %q", step, err, s.steps)
		}
		if ran := slices.Contains(s.steps, "act"); ran != (step == "act" || step == "leave") {
			t.Errorf("%s: it ran: %v", step, ran)
		}
		if slices.Contains(s.steps, "enter") && step != "enter" && !slices.Contains(s.steps, "leave") {
			t.Errorf("%s: its place is not given back", step)
		}
	}
}

func TestTheOrderOfACall(t *testing.T) {
	allowed := answers{list: "allow"}
	s := &script{first: allowed, second: allowed, waits: true}
	if err := s.run(); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(s.steps, " "); got != "open authenticate list charge judge enter authenticate list judge alive intend act leave end" {
		t.Error(got)
	}
}

// A call that is only let pass has been refused: the judge is not asked, and the roles have nothing to add to what the list allows.
func TestWhoIsNotAsked(t *testing.T) {
	for want, a := range map[string]answers{
		"open authenticate list charge would deny list enter alive intend act leave end":                  {list: "deny, LogOnly", refuses: true},
		"open authenticate list charge judge would deny judge enter alive intend act leave end":           {list: "allow, LogOnly", roles: "deny", refuses: true},
		"open authenticate list roles charge deny list, nor roles end":                                    {list: "deny", roles: "deny"},
		"open authenticate list roles charge would deny list, nor roles enter alive intend act leave end": {list: "deny, LogOnly", roles: "deny"},
		"open authenticate list roles charge judge deny judge end":                                        {list: "deny", roles: "allow", refuses: true},
		"open authenticate end": {proof: true, list: "allow"},
	} {
		s := &script{first: a}
		_ = s.run()
		if got := strings.Join(s.steps, " "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestAuthorizeChargesNothing(t *testing.T) {
	s := &script{first: answers{list: "deny"}}
	if err := Authorize(context.Background(), s, s); err == nil {
		t.Error("it goes on")
	}
	s.first.list = "allow"
	if err := Authorize(context.Background(), s, s); err != nil {
		t.Error(err)
	}
	if got := strings.Join(s.steps, " "); got != "list deny list list judge" {
		t.Error(got)
	}
}
