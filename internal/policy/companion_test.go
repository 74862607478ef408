package policy

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
)

// paired returns a policy whose answer and companion are the same number.
func paired(n int) Modules {
	m := deciding(fmt.Sprintf(`{"allowed": true, "findings": {{"code": "N%d", "effect": "audit"}}}`, n))
	m.Companion = fmt.Sprintf("N%d", n)
	return m
}

func TestACompanionTravelsWithItsSnapshot(t *testing.T) {
	e := activated(t, paired(0), patient)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				s, _ := e.Active()
				d, err := e.DecideWith(context.Background(), s, nil, ast.NewObject())
				if err != nil || d.Findings[0].Code != s.Companion() || d.Revision != s.Revision() {
					t.Errorf("a snapshot with companion %v decides %+v, %v", s.Companion(), d, err)
					return
				}
			}
		})
	}
	for n := 1; n <= 20; n++ {
		if s, err := e.Activate(t.Context(), paired(n)); err != nil || s.Companion() != fmt.Sprintf("N%d", n) {
			t.Fatalf("activated %v, %v", s.Companion(), err)
		}
	}
	close(stop)
	wg.Wait()
}

func TestASnapshotOfModulesWithoutCompanionHasNone(t *testing.T) {
	s, _ := activated(t, small(), patient).Active()
	if c := s.Companion(); c != nil {
		t.Errorf("companion %v", c)
	}
}

func TestChecksOfModulesAreRunBesideThoseOfTheEngine(t *testing.T) {
	failing := func(name string) Check {
		return Check{Name: name, Input: map[string]any{}, Want: func(Decision) error { return errors.New("it does not hold") }}
	}
	o := patient
	o.Checks = []Check{failing("of the engine")}
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	m := small()
	m.Checks = []Check{failing("of the modules")}
	_, err = e.Activate(t.Context(), m)
	wantError(t, err, `policy check "of the engine": it does not hold`)
	wantError(t, err, `policy check "of the modules": it does not hold`)
	if _, ok := e.Active(); ok {
		t.Fatal("it was activated")
	}

	e = activated(t, small(), patient)
	good, _ := e.Active()
	for name, c := range map[string]Check{"fails": failing("x"), "has no name": failing(""), "wants nothing": {Name: "x", Input: map[string]any{}}} {
		m.Checks = []Check{c}
		if _, err := e.Activate(t.Context(), m); err == nil {
			t.Errorf("a check that %s: activated", name)
		}
		if s, _ := e.Active(); s != good {
			t.Errorf("a check that %s: the policies before do not decide any more", name)
		}
	}
	wantError(t, func() error { m.Checks = []Check{failing("")}; _, err := e.Activate(t.Context(), m); return err }(), "needs a name and a Want")
}

func TestOtherDataKeepsCompanionAndChecks(t *testing.T) {
	m := paired(1)
	m.Checks = []Check{{Name: "x"}}
	got := m.WithData(map[string]any{"a": 1})
	if got.Companion != m.Companion || len(got.Checks) != 1 || got.Data["a"] != 1 || m.Data != nil {
		t.Errorf("%+v", got)
	}
}

func TestWatchBindsWhatGoesWithTheFiles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range small().Files {
		write(t, filepath.Join(dir, name), text)
	}
	var mu sync.Mutex // guards fail and n
	var fail error
	n := 1
	bind := func(m Modules) (Modules, error) {
		mu.Lock()
		defer mu.Unlock()
		if fail != nil {
			return m, fail // with files that would activate
		}
		m = m.WithData(map[string]any{"n": n})
		m.Companion = n
		return m, nil
	}
	set := func(v int, err error) {
		mu.Lock()
		defer mu.Unlock()
		n, fail = v, err
	}
	e := watchEngine(t, byPoll)
	told := watching(t, e, dir, bind)
	first := until(t, told, "the first", activation)
	if first.s.Companion() != 1 {
		t.Fatalf("companion %v", first.s.Companion())
	}
	set(2, errors.New("half a file"))
	wantError(t, until(t, told, "the error", refusal).err, "half a file")
	if s, ok := e.Active(); !ok || s != first.s {
		t.Fatal("the policies before do not decide any more")
	}
	set(3, nil)
	if second := until(t, told, "the second", activation); second.s.Companion() != 3 {
		t.Fatalf("companion %v", second.s.Companion())
	}
}

func TestDocumentsOfConfigurationAreReserved(t *testing.T) {
	for _, pkg := range []string{"pipeguard.policies", "pipeguard.modules.mine", "pipeguard.scope", "pipeguard.parameters.x"} {
		m := small().with(map[string]string{"b.rego": "package " + pkg + "\n\nx := 1\n"})
		_, _, err := Try(t.Context(), m, patient)
		wantError(t, err, "is reserved")
	}
	m := small().with(map[string]string{"b.rego": "package pipeguard\n\npolicies[x] := 1 if some x in [\"a\"]\n"})
	_, _, err := Try(t.Context(), m, patient)
	wantError(t, err, "pipeguard.policies is reserved")
}
