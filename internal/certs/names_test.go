package certs

import (
	"crypto/x509"
	"slices"
	"testing"
	"time"
)

// A client outside of the cluster's DNS calls the Service by its address.
func TestACertificateIsForAddressesToo(t *testing.T) {
	n := names
	n.Extra = []string{"pipeguard.example.com", "10.96.0.20", "fd00::20"}
	if err := n.check(true); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	a, err := NewAuthority(n.hosts(), now, 10*day)
	if err != nil {
		t.Fatal(err)
	}
	hosts := slices.Clone(n.hosts())
	slices.Reverse(hosts)
	if err := fits(a.certificate, hosts); err != nil {
		t.Error(err)
	}
	leaf, err := a.Issue(n.hosts(), now, day)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range append(n.hosts(), "10.96.0.20", "fd00:0::20") {
		if _, err := leaf.Leaf.Verify(x509.VerifyOptions{Roots: pool(a.certificate), DNSName: host}); err != nil {
			t.Error(err)
		}
	}
	for _, other := range []string{"10.96.0.21", "fd00::21", "other.example"} {
		if _, err := a.Issue([]string{other}, now, day); err == nil {
			t.Errorf("the authority signs for %s", other)
		}
	}
	for _, other := range [][]string{{"10.96.0.20"}, {"pipeguard.example.com"}, {"10.96.0.21", "fd00::20"}} {
		n := names
		if n.Extra = other; fits(a.certificate, n.hosts()) == nil {
			t.Errorf("it is fit for %q", other)
		}
	}
	for _, wrong := range []string{"10.96.0.0/24", "[::1]", "fe80::1%eth0", "a:443", "*.example.com", ""} {
		n := names
		if n.Extra = []string{wrong}; n.check(true) == nil {
			t.Errorf("%q is accepted", wrong)
		}
	}
}
