package wmi

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

var errLost = &Error{Code: 0x800706BA}

// exchange makes connections that are numbers, in the order they are made in.
type exchange struct {
	connections[int]
	made, released []int
	refuse         error
}

func newExchange() *exchange {
	e := new(exchange)
	e.connect = func(string) (int, error) {
		if e.refuse != nil {
			return 0, e.refuse
		}
		e.made = append(e.made, len(e.made)+1)
		return len(e.made), nil
	}
	e.release = func(line int) { e.released = append(e.released, line) }
	return e
}

func TestConnectionsAreKeptPerNamespace(t *testing.T) {
	e := newExchange()
	var used []int
	for _, namespace := range []string{CIMv2, Storage, CIMv2, Storage} {
		if err := e.once(namespace, func(line int) error { used = append(used, line); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(used, []int{1, 2, 1, 2}) || len(e.released) > 0 {
		t.Error(used, e.released)
	}
	e.close()
	slices.Sort(e.released)
	if !slices.Equal(e.released, []int{1, 2}) || len(e.held) > 0 {
		t.Error(e.released)
	}
}

func TestReadIsRepeatedOnceOverANewConnection(t *testing.T) {
	e := newExchange()
	var used []int
	fail := map[int]error{1: fmt.Errorf("next: %w", errLost)}
	use := func(line int) error { used = append(used, line); return fail[line] }
	if err := e.once(CIMv2, func(int) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := e.read(CIMv2, use); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(used, []int{1, 2}) || !slices.Equal(e.released, []int{1}) {
		t.Error(used, e.released)
	}

	fail[2], fail[3] = errLost, errLost
	if err := e.read(CIMv2, use); !errors.Is(err, errLost) {
		t.Error(err)
	}
	if !slices.Equal(used, []int{1, 2, 2, 3}) || !slices.Equal(e.released, []int{1, 2, 3}) {
		t.Error(used, e.released)
	}
}

func TestReadIsNotRepeated(t *testing.T) {
	for name, test := range map[string]struct {
		warm bool
		err  error
	}{
		"after an answer":                    {true, &Error{Code: 0x80041010}},
		"after an error of our own":          {true, errors.New("own")},
		"over a connection that is just new": {false, errLost},
	} {
		t.Run(name, func(t *testing.T) {
			e := newExchange()
			if test.warm {
				if _, err := e.get(CIMv2); err != nil {
					t.Fatal(err)
				}
			}
			calls := 0
			if err := e.read(CIMv2, func(int) error { calls++; return test.err }); !errors.Is(err, test.err) || calls != 1 {
				t.Error(calls, err)
			}
		})
	}
}

func TestOnceIsNeverRepeated(t *testing.T) {
	e := newExchange()
	if _, err := e.get(CIMv2); err != nil {
		t.Fatal(err)
	}
	calls := 0
	if err := e.once(CIMv2, func(int) error { calls++; return errLost }); !errors.Is(err, errLost) || calls != 1 {
		t.Error(calls, err)
	}
	if !slices.Equal(e.released, []int{1}) {
		t.Error("the lost connection is kept", e.released)
	}
	if err := e.once(CIMv2, func(line int) error { return nil }); err != nil || len(e.made) != 2 {
		t.Error(e.made, err)
	}
}

func TestRefusedConnectionsAreNotKept(t *testing.T) {
	e := newExchange()
	e.refuse = errors.New("no such namespace")
	called := func(int) error { t.Error("called without a connection"); return nil }
	if err := e.once(CIMv2, called); !errors.Is(err, e.refuse) {
		t.Error(err)
	}
	if err := e.read(CIMv2, called); !errors.Is(err, e.refuse) {
		t.Error(err)
	}
	e.close()
	if len(e.released) > 0 {
		t.Error(e.released)
	}
}
