package intake

// Place is what a body that was read holds until the caller leaves it. It is used by one at a time.
type Place struct {
	desk   *Desk
	reader *reader
	names  []string // of its tenant, once it stays
}

// tenant is a name of a tenant, as an address gives it.
type tenant struct{ address, name string }

// Places that are still free to an address are for bodies whose tenants are not known yet.
const (
	// share is how many places one tenant has for each that is left: where 24 of 264 are left, of which 8 are spare, one has 240, two have 124 each and
	// ten 25 each.
	share = 16
	// spare is the part of an address's places, one in so many, that only the first body of a tenant takes.
	spare = 32
)

// Stay asks whether the body may keep its place while it waits to be judged, for a tenant with these names, as the address gives them. The name with the most
// places counts. A tenant's first body may always stay. Others may if the tenant has no more than its share of what the address has left, so that a lone tenant
// has nearly all, and one that comes later finds places. A body that may not stay leaves soon. One that was told to stay stays.
func (p *Place) Stay(names []string) bool {
	if p.names != nil {
		return true
	}
	d, address := p.desk, p.reader.address
	d.mu.Lock()
	defer d.mu.Unlock()
	most := 1 // with this one
	for _, name := range names {
		most = max(most, d.tenants[tenant{address, name}]+1)
	}
	// Places that all addresses have in common are not spared: who takes the others may be a stranger.
	left := min(d.limits.PlacesPerAddress-d.judged[address]-d.limits.PlacesPerAddress/spare, d.limits.Places-d.places)
	if most > 1 && most > share*left {
		return false
	}
	for _, name := range names {
		count(d.tenants, tenant{address, name}, 1)
	}
	p.names = names
	return true
}

// Wait says that the body is going to wait to be judged. The turn of one that is not huge ends: others need not wait for what it waits for.
func (p *Place) Wait() {
	if !p.reader.isHuge() {
		p.endTurn()
	}
}

func (p *Place) endTurn() {
	p.reader.done()
	p.reader.done = func() {}
}

// Leave ends it.
func (p *Place) Leave() {
	p.endTurn()
	d, address := p.desk, p.reader.address
	d.mu.Lock()
	defer d.mu.Unlock()
	d.places--
	count(d.judged, address, -1)
	d.held -= p.reader.bytes
	for _, name := range p.names {
		count(d.tenants, tenant{address, name}, -1)
	}
}
