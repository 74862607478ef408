package intake

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/pipeguard/pipeguard/internal/turns"
)

// Limits bound what requests may hold. Fields that are 0 have the default.
type Limits struct {
	// Keep is how many bytes of a body are kept, 3 MiB. What comes after them is read, and forgotten.
	Keep int64
	// Read is how many bytes of a body are read at all, 128 MiB.
	Read int64
	// Unread is how many bodies are being read at one time, 512; PerAddress is the share of one address, 256. An API server
	// sends up to 200 requests that change something at one time, unless it is told otherwise.
	Unread, PerAddress int
	// Held is how many bytes bodies may hold together, 64 MiB; UnreadBytes is the share of those that are being read, 32 MiB.
	// The first 64 KiB of each body do not count: their number bounds them, and a small review, as most are, is read whatever
	// large ones hold.
	Held, UnreadBytes int64
	// Tenant names the tenant of a body by its first 64 KiB. If it is there, larger bodies of one address take turns, those of its tenants in rounds, from
	// the end of these bytes until they are judged. Few are read or judged at one time; others wait, and hold no more than these bytes.
	Tenant func(beginning []byte) turns.Sender
	// Places is how many bodies that were read are being judged at one time, 280; PlacesPerAddress is the share of one address, 264, of which one
	// tenant has 240: see Place.Stay.
	Places, PlacesPerAddress int
}

const (
	// portion is how many bytes of a body must come in each portionTime: 32 KiB/s at least.
	portion     = 64 << 10
	portionTime = 2 * time.Second
	// totalTime bounds the reading of a body; an API server does not wait longer for its answer than 30 s.
	totalTime = 10 * time.Second
	// youth is how long a body may be unread before others may take its place. An API server sends a body right after
	// its header, so that even on a busy machine it is read by then.
	youth = 500 * time.Millisecond
	// large is how many bodies of more than a portion an address has turns for, and of those of more than huge bytes, or of unknown length, as many
	// again; one tenant has all but one. Others wait for waitForTurn, as many as may be unread. In its turn a body comes within turnTime.
	large       = 3
	huge        = 256 << 10
	waitForTurn = 2 * time.Second
	turnTime    = time.Second
)

func (l Limits) withDefaults() Limits {
	l.Keep, l.Read = cmp.Or(l.Keep, 3<<20), cmp.Or(l.Read, 128<<20)
	l.Held, l.UnreadBytes = cmp.Or(l.Held, 64<<20), cmp.Or(l.UnreadBytes, 32<<20)
	l.Unread, l.PerAddress = cmp.Or(l.Unread, 512), cmp.Or(l.PerAddress, 256)
	l.Places, l.PlacesPerAddress = cmp.Or(l.Places, 280), cmp.Or(l.PlacesPerAddress, 264)
	return l
}

// Reasons for which a body is not read to its end, or not judged.
var (
	// ErrBusy means that others take all there is to hold.
	ErrBusy = errors.New("too many requests at once")
	// ErrSlow means that the body came too slowly, or so late that others took its place.
	ErrSlow = errors.New("the body came too slowly")
	// ErrTooLarge means that the body has more than Limits.Keep bytes. The first ones are there.
	ErrTooLarge = errors.New("the body is too large")
	// ErrNoTurn is the ErrBusy of a body whose turn did not come: see Limits.Tenant. Its beginning is there, and the rest was not read.
	ErrNoTurn = fmt.Errorf("%w: many large ones of this sender", ErrBusy)
)

// Desk reads bodies. A body takes one of the places only when it is there. Its methods may be called by many at once.
type Desk struct {
	limits Limits
	turns  *turns.Groups // of bodies of more than a portion, by address

	mu      sync.Mutex     // guards the rest
	unread  []*reader      // the oldest first
	counts  map[string]int // of unread, by address
	judged  map[string]int // of places, by address
	tenants map[tenant]int // of places whose bodies stay
	pending int64          // bytes that unread hold, without the first portion of each
	held    int64          // bytes that all bodies hold, without the first portion of each
	places  int            // that are taken
}

// New returns a Desk.
func New(l Limits) *Desk {
	l = l.withDefaults()
	return &Desk{limits: l, turns: turns.NewSeparateGroups(large, l.PerAddress, waitForTurn), counts: map[string]int{}, judged: map[string]int{}, tenants: map[tenant]int{}}
}

// reader is one body that is being read.
type reader struct {
	address string
	length  int64 // as announced, -1 if it is not
	since   time.Time
	until   time.Time // when it must be there
	stop    func()    // ends the read, or the wait for a turn
	done    func()    // ends the turn of a large body
	gone    bool      // others took its place
	bytes   int64     // that it holds
}

// Read reads the body of req into body, and takes a place for it, which the caller leaves. Only if err is nil is there one. Of a body that is
// larger than what is kept, or whose turn did not come, body has the beginning.
func (d *Desk) Read(w http.ResponseWriter, req *http.Request, body *bytes.Buffer) (place *Place, err error) {
	body.Reset()
	control := http.NewResponseController(w)
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	stop := func() {
		cancel()
		_ = control.SetReadDeadline(time.Now())
	}
	now := time.Now()
	r := &reader{address: Host(req.RemoteAddr), length: req.ContentLength, since: now, until: now.Add(totalTime), stop: stop, done: func() {}}
	if req.ContentLength > d.limits.Read {
		return nil, ErrTooLarge
	}
	if !d.admit(r) {
		return nil, ErrBusy
	}
	defer func() {
		if place == nil {
			r.done()
		}
	}()
	err = d.read(ctx, control, req.Body, body, r)
	switch {
	case d.dismiss(r): // others took its place meanwhile
		return nil, ErrSlow
	case err != nil:
		d.giveBack(r.bytes)
		return nil, err
	case !d.take(r.address):
		d.giveBack(r.bytes)
		return nil, ErrBusy
	}
	_ = control.SetReadDeadline(time.Time{}) // it would end the request's context while it is judged
	return &Place{desk: d, reader: r}, nil
}

// read reads portion after portion.
func (d *Desk) read(ctx context.Context, control *http.ResponseController, from io.Reader, body *bytes.Buffer, r *reader) error {
	var rest int64
	for total := int64(0); ; {
		deadline := r.until
		if next := time.Now().Add(portionTime); next.Before(deadline) {
			deadline = next
		}
		if !d.wait(r, func() { _ = control.SetReadDeadline(deadline) }) {
			return ErrSlow
		}
		n, err := d.portion(from, body, r)
		total += n
		rest = total - d.limits.Keep
		switch {
		case errors.Is(err, io.EOF) && rest <= 0:
			return nil
		case errors.Is(err, io.EOF), err == nil && total > d.limits.Read:
			return ErrTooLarge
		case isTimeout(err):
			return ErrSlow
		case err != nil:
			return err
		case total == portion && d.limits.Tenant != nil:
			if err := d.takeTurn(ctx, r, body.Bytes()); err != nil {
				return err
			}
		}
	}
}

func (r *reader) isHuge() bool { return r.length < 0 || r.length > huge }

// takeTurn waits for the turn of a body of which there may be more than its beginning. What is read then is young.
func (d *Desk) takeTurn(ctx context.Context, r *reader, beginning []byte) error {
	group := r.address
	if r.isHuge() {
		group += " " // no address has one
	}
	done, err := d.turns.Take(ctx, group, d.limits.Tenant(beginning))
	switch {
	case errors.Is(err, turns.ErrBusy):
		return ErrNoTurn
	case err != nil:
		return err
	}
	r.done = done
	d.renew(r)
	return nil
}

// portion reads up to one portion. What is beyond the limit is read and forgotten. The error is nil if there may be more.
func (d *Desk) portion(from io.Reader, body *bytes.Buffer, r *reader) (int64, error) {
	if keep := min(portion, d.limits.Keep-int64(body.Len())); keep > 0 {
		if body.Len() == 0 {
			return io.CopyN(body, from, keep)
		}
		if !d.grow(r, keep) {
			return 0, ErrBusy
		}
		n, err := io.CopyN(body, from, keep)
		d.shrink(r, keep-n)
		return n, err
	}
	return io.CopyN(io.Discard, from, portion)
}

// isTimeout reports whether a read was ended by its deadline.
func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}

// Host is the sender's IP address, of an address with a port.
func Host(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}

// String says what is held, for logs and tests.
func (d *Desk) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return fmt.Sprintf("%d unread with %d bytes, %d judged, %d bytes in all", len(d.unread), d.pending, d.places, d.held)
}
