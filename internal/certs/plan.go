package certs

import (
	"crypto/x509"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// plan decides what becomes of the Secret. It looks at nothing but its arguments, so that any leader who comes
// to know the same goes on where another has stopped.
type plan struct {
	hosts           []string
	authority, leaf time.Duration // lifetimes
	grace, keep     time.Duration
}

// sight is what the leader knows beside the Secret.
type sight struct {
	// complete says that every configuration was read.
	complete bool
	// live are the certificates that the configurations trust now and that are valid.
	live []*x509.Certificate
	// stood is for how long this leader has seen the bundle of this very state in every configuration.
	stood time.Duration
}

// change is one thing that a step did.
type change struct {
	what   string // serving or authority
	reason string
	note   string
}

// Reasons of events.
const (
	reasonPrepared = "AuthorityPrepared"
	reasonRotated  = "AuthorityRotated"
	reasonRetired  = "AuthorityRetired"
	reasonIssued   = "CertificateIssued"
	reasonReplaced = "ContentReplaced"
)

var errUnseen = errors.New("there is no authority, and the configurations could not be read: it is not known whom API servers trust now")

// step returns the next state. If it is the given one, there is nothing to do but wait.
func (p plan) step(s state, c sight, now time.Time) (state, []change, error) {
	var changes []change
	did := func(what, reason, format string, args ...any) {
		changes = append(changes, change{what, reason, fmt.Sprintf(format, args...)})
	}
	if s.current == nil && (s.next == nil || len(s.previous) == 0) {
		// The authority is lost, but replicas may still serve what it signed, and API servers trust it. As long as
		// they do, the new one is introduced like any other.
		if !c.complete {
			return s, nil, errUnseen
		}
		s.previous = p.rescue(s, c.live)
	}

	switch {
	case s.next == nil && p.needsAuthority(s.current, now):
		next, err := NewAuthority(p.hosts, now, p.authority)
		if err != nil {
			return s, nil, err
		}
		s.next = next
		did("authority", reasonPrepared, "the next authority, %s, is made known to API servers", describe(next.certificate))
		if s.current != nil || len(s.previous) > 0 {
			break
		}
		fallthrough // no client trusts another
	case s.next != nil && (c.stood >= p.grace || s.current == nil && len(s.previous) == 0):
		if s.current != nil {
			s.previous = sorted(append(slices.Clone(s.previous), s.current.certificate))
		}
		s.current, s.next, s.leaf = s.next, nil, nil
		did("authority", reasonRotated, "the authority is now %s", describe(s.current.certificate))
	case s.next == nil && len(s.previous) > 0 && c.stood >= p.keep:
		s.previous = nil
		did("authority", reasonRetired, "the previous authority is not trusted any more")
	}

	if s.current != nil {
		if !p.needsLeaf(s, now) {
			return s, changes, nil
		}
		leaf, err := s.current.Issue(p.hosts, now, p.leaf)
		if err != nil {
			return s, nil, err
		}
		s.leaf = leaf
		did("serving", reasonIssued, "the certificate is now %s", describe(leaf.Leaf))
	} else if s.leaf != nil && verify(s.leaf, pool(s.trusted()...), p.hosts, now) != nil {
		s.leaf = nil // no client would accept it, and there is no key to make another yet
	}
	return s, changes, nil
}

// due is how long it takes until a wait is over, math.MaxInt64 if there is none.
func (p plan) due(s state, c sight) time.Duration {
	switch {
	case s.next != nil:
		return p.grace - c.stood
	case len(s.previous) > 0:
		return p.keep - c.stood
	}
	return math.MaxInt64
}

// rescue returns the authorities that what is served now may come from.
func (p plan) rescue(s state, live []*x509.Certificate) []*x509.Certificate {
	all := slices.Clone(s.previous)
	for _, c := range live {
		if s.next == nil || !c.Equal(s.next.certificate) {
			all = append(all, c)
		}
	}
	if all = sorted(all); len(all) > maxCertificates {
		all = all[len(all)-maxCertificates:] // the youngest
	}
	return all
}

// needsAuthority reports whether a next authority is due: with a third of its life left, an authority still outlives
// whatever holds up its succession for months.
func (p plan) needsAuthority(a *Authority, now time.Time) bool {
	return a == nil || !now.Before(a.certificate.NotAfter.Add(-p.authority/3))
}

// needsLeaf reports whether the current authority should issue.
func (p plan) needsLeaf(s state, now time.Time) bool {
	issuer := s.current.certificate
	if s.leaf == nil || verify(s.leaf, pool(issuer), p.hosts, now) != nil {
		return true
	}
	until := s.leaf.Leaf.NotAfter
	return !now.Before(until.Add(-p.leaf/3)) && until.Before(issuer.NotAfter) // another would not last longer
}

func describe(c *x509.Certificate) string {
	return fmt.Sprintf("serial %x, valid until %s", c.SerialNumber, c.NotAfter.UTC().Format(time.RFC3339))
}
