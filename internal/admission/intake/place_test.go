package intake

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
)

// crowd keeps the places of bodies that stay.
type crowd struct {
	*Desk
	t     *testing.T
	stays []*Place
}

// come has a body arrive and ask to stay; one that may not leaves at once.
func (c *crowd) come(address string, names ...string) (stays bool) {
	c.t.Helper()
	r := whole(c.Desk, address, "x")
	if r.err != nil {
		c.t.Fatalf("%s %v: %v after %d", address, names, r.err, len(c.stays))
	}
	if !r.place.Stay(names) {
		r.place.Leave()
		return false
	}
	c.stays = append(c.stays, r.place)
	return true
}

// fill has bodies of one tenant arrive until none may stay, and says how many do.
func (c *crowd) fill(address string, names ...string) (n int) {
	c.t.Helper()
	for c.come(address, names...) {
		n++
	}
	return n
}

func (c *crowd) end() {
	for _, p := range c.stays {
		p.Leave()
	}
	if c.String() != empty || len(c.tenants) != 0 {
		c.t.Error(c, c.tenants)
	}
}

func crowded(t *testing.T, do func(c *crowd)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &crowd{Desk: New(Limits{}), t: t}
		do(c)
		c.end()
	})
}

func TestALoneTenantHasNearlyAllPlacesAndOthersTheRest(t *testing.T) {
	crowded(t, func(c *crowd) {
		if n := c.fill("10.0.0.1", "namespace evil", "user eve"); n != 240 {
			t.Errorf("a lone tenant has %d places", n)
		}
		if n := c.fill("10.0.0.1", "namespace shop", "user bob"); n < 10 {
			t.Errorf("another has %d", n)
		}
		for i := range 8 {
			if !c.come("10.0.0.1", fmt.Sprint("namespace ", i)) {
				t.Error("the first body of a tenant may not stay")
			}
		}
		if c.come("10.0.0.1", "namespace evil", "user eve") {
			t.Error("the first tenant has more")
		}
		if n := c.fill("10.0.0.2", "namespace evil", "user eve"); n < 8 {
			t.Errorf("of another address, %d stay", n)
		}
	})
}

func TestTenantsThatComeTogetherShareThePlaces(t *testing.T) {
	for tenants, least := range map[int]int{2: 123, 10: 24, 30: 7} {
		crowded(t, func(c *crowd) {
			have := map[string]int{}
			for more := true; more; {
				more = false
				for i := range tenants {
					if name := fmt.Sprint("namespace ", i); c.come("10.0.0.1", name) {
						have[name]++
						more = true
					}
				}
			}
			for name, n := range have {
				if n < least {
					t.Errorf("%s of %d has %d places", name, tenants, n)
				}
			}
			if !c.come("10.0.0.1", "namespace late") {
				t.Errorf("with %d there is no place for a late one", tenants)
			}
		})
	}
}

// One user in many namespaces is one, and so are many users in one namespace.
func TestATenantHasAsManyPlacesAsTheNameOfItThatHasMost(t *testing.T) {
	crowded(t, func(c *crowd) {
		n := 0
		for c.come("10.0.0.1", fmt.Sprint("namespace ", n), "user eve") {
			n++
		}
		if n != 240 || c.come("10.0.0.1", "namespace 0", "user eve") || !c.come("10.0.0.1", "namespace 0", "user bob") {
			t.Errorf("%d stay", n)
		}
	})
}

// A stranger that gives ever new names has the places of its own address alone.
func TestNamesOfAStrangerCountAtItsOwnAddress(t *testing.T) {
	crowded(t, func(c *crowd) {
		n := 0
		for ; ; n++ {
			r := whole(c.Desk, "10.0.0.66", "x")
			if r.err != nil {
				if !errors.Is(r.err, ErrBusy) {
					t.Fatal(r.err)
				}
				break
			}
			if !r.place.Stay([]string{"namespace shop", fmt.Sprint("user ", n)}) && !r.place.Stay([]string{fmt.Sprint("namespace ", n)}) {
				t.Fatalf("%d: a first body may not stay", n)
			}
			c.stays = append(c.stays, r.place)
		}
		if n != 264 {
			t.Errorf("a stranger has %d places", n)
		}
		if n := c.fill("10.0.0.1", "namespace shop"); n != 15 {
			t.Errorf("the tenant whose name it uses has %d", n)
		}
	})
}

func TestOneThatWasToldToStayStays(t *testing.T) {
	crowded(t, func(c *crowd) {
		c.fill("10.0.0.1", "namespace evil")
		if !c.stays[0].Stay([]string{"namespace evil"}) || c.tenants[tenant{"10.0.0.1", "namespace evil"}] != 240 {
			t.Error(c.tenants)
		}
	})
}
