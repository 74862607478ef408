package intake

import (
	"slices"
	"time"
)

// admit enters a body that is to be read. If there are too many, the oldest of the sender, or of the address with the most,
// makes room: a body that comes is read within milliseconds, and what is old does not come.
func (d *Desk) admit(r *reader) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.counts[r.address] >= d.limits.PerAddress && !d.evict(func(u *reader) bool { return u.address == r.address }) {
		return false
	}
	if len(d.unread) >= d.limits.Unread && !d.evict(d.isOfTheBusiest()) && !d.evict(anyone) {
		return false
	}
	d.unread = append(d.unread, r)
	count(d.counts, r.address, 1)
	return true
}

func anyone(*reader) bool { return true }

// holds reports whether the bytes of a body count.
func holds(r *reader) bool { return r.bytes > 0 }

// isOfTheBusiest says of a body whether no address has more of them. The caller holds d.mu.
func (d *Desk) isOfTheBusiest() func(*reader) bool {
	most := 0
	for _, n := range d.counts {
		most = max(most, n)
	}
	return func(r *reader) bool { return d.counts[r.address] == most }
}

// evict ends the reading of the oldest body of which may is true, unless it is young. The caller holds d.mu.
func (d *Desk) evict(may func(*reader) bool) bool {
	i := slices.IndexFunc(d.unread, may)
	if i < 0 || time.Since(d.unread[i].since) < youth {
		return false
	}
	r := d.unread[i]
	d.forget(i)
	d.held -= r.bytes
	r.gone = true
	r.stop()
	return true
}

// forget takes a reader off the list of those that read. The caller holds d.mu.
func (d *Desk) forget(i int) {
	r := d.unread[i]
	d.unread = slices.Delete(d.unread, i, i+1)
	d.pending -= r.bytes
	count(d.counts, r.address, -1)
}

// renew makes a body the youngest of those that are read.
func (d *Desk) renew(r *reader) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if i := slices.Index(d.unread, r); i >= 0 {
		r.since = time.Now()
		r.until = r.since.Add(turnTime)
		d.unread = append(slices.Delete(d.unread, i, i+1), r)
	}
}

// wait calls set, which sets the deadline of the next read, unless the body has lost its place.
func (d *Desk) wait(r *reader, set func()) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !r.gone {
		set()
	}
	return !r.gone
}

// grow enters bytes that a body is about to hold. If they are too many, old bodies make room.
func (d *Desk) grow(r *reader, n int64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for !r.gone && (d.pending+n > d.limits.UnreadBytes || d.held+n > d.limits.Held) {
		if !d.evict(holds) {
			return false
		}
	}
	if r.gone {
		return false
	}
	d.account(r, n)
	return true
}

// shrink takes bytes off the books that did not come.
func (d *Desk) shrink(r *reader, n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !r.gone {
		d.account(r, -n)
	}
}

func (d *Desk) account(r *reader, n int64) {
	r.bytes += n
	d.pending += n
	d.held += n
}

// dismiss ends the reading of a body. Its bytes stay on the books, unless it had lost its place, of which true tells.
func (d *Desk) dismiss(r *reader) (gone bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.gone {
		return true
	}
	d.forget(slices.Index(d.unread, r))
	return false
}

// take takes a place for a body that was read.
func (d *Desk) take(address string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.places >= d.limits.Places || d.judged[address] >= d.limits.PlacesPerAddress {
		return false
	}
	d.places++
	count(d.judged, address, 1)
	return true
}

func (d *Desk) giveBack(bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.held -= bytes
}
