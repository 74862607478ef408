package certs

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
)

// state is what the Secret says.
type state struct {
	// current signs what is served. It is nil if it was lost, or there was never one.
	current *Authority
	// next takes over once every API server trusts it.
	next *Authority
	// previous are trusted until every replica has put down what they signed.
	previous []*x509.Certificate
	// leaf is what is served.
	leaf *tls.Certificate
}

// trusted are the authorities that API servers should trust. They are ordered by age, so that an authority that
// changes its part leaves the bundle as it is.
func (s state) trusted() []*x509.Certificate {
	all := slices.Clone(s.previous)
	for _, a := range []*Authority{s.current, s.next} {
		if a != nil {
			all = append(all, a.certificate)
		}
	}
	return sorted(all)
}

// bundle is what should stand in caBundle.
func (s state) bundle() []byte { return encodeCertificates(s.trusted()) }

// parts names who plays which part: while it is the same, a wait goes on.
func (s state) parts() string {
	var b strings.Builder
	name := func(part string, c *x509.Certificate) { fmt.Fprintf(&b, "%s %x\n", part, sha256.Sum256(c.Raw)) }
	if s.current != nil {
		name("current", s.current.certificate)
	}
	if s.next != nil {
		name("next", s.next.certificate)
	}
	for _, c := range s.previous {
		name("previous", c)
	}
	return b.String()
}

// sorted orders certificates by age and drops what is there twice.
func sorted(all []*x509.Certificate) []*x509.Certificate {
	slices.SortFunc(all, func(a, b *x509.Certificate) int {
		return cmp.Or(a.NotBefore.Compare(b.NotBefore), bytes.Compare(a.Raw, b.Raw))
	})
	return slices.CompactFunc(all, (*x509.Certificate).Equal)
}
