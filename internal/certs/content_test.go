package certs

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// good is the content of a Secret in the middle of a hand-over.
func good(t testing.TB) map[string][]byte {
	t.Helper()
	now, hosts := time.Now(), names.hosts()
	var made []*Authority
	for range 3 {
		a, err := NewAuthority(hosts, now, 365*day)
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, a)
	}
	leaf, err := made[0].Issue(hosts, now, 30*day)
	if err != nil {
		t.Fatal(err)
	}
	data, err := state{current: made[0], next: made[1], previous: []*x509.Certificate{made[2].certificate}, leaf: leaf}.encode()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestWhatIsWrittenReadsTheSame(t *testing.T) {
	data := good(t)
	s, faults := parse(data, names.hosts(), time.Now())
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	again, err := s.encode()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(data, again); diff != "" {
		t.Error(diff)
	}
}

func TestParseRefuses(t *testing.T) {
	data := good(t)
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(p384)
	if err != nil {
		t.Fatal(err)
	}
	foreignCurve := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	truncated := data[keyAuthority][:len(data[keyAuthority])/2]
	for name, c := range map[string]struct {
		key   string
		value []byte
		now   time.Time
		want  string
	}{
		"a certificate that is cut off":             {keyAuthority, truncated, time.Time{}, "ca.crt: something that is not a certificate in PEM"},
		"a certificate that is no certificate":      {keyAuthority, []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), time.Time{}, "ca.crt: x509: malformed certificate"},
		"a key for a certificate":                   {keyAuthority, data[keyAuthorityKey], time.Time{}, "ca.crt: something that is not a certificate in PEM"},
		"two certificates":                          {keyAuthority, slices.Concat(data[keyAuthority], data[keyNext]), time.Time{}, "ca.crt: 2 certificates, want one"},
		"text after a certificate":                  {keyAuthority, slices.Concat(data[keyAuthority], []byte("x")), time.Time{}, "ca.crt: something that is not a certificate in PEM"},
		"more text than a certificate has":          {keyAuthority, bytes.Repeat([]byte(" "), maxText+1), time.Time{}, "ca.crt: longer than 65536 bytes"},
		"more certificates than anybody needs":      {keyPrevious, bytes.Repeat(data[keyAuthority], maxCertificates+1), time.Time{}, "previous-ca.crt: more than 16 certificates"},
		"an authority that cannot sign":             {keyAuthority, nil, time.Time{}, "ca.crt: 0 certificates, want one"},
		"another authority's key":                   {keyAuthorityKey, data[keyNextKey], time.Time{}, "ca.crt: the key is not that of the certificate"},
		"a key on another curve":                    {keyAuthorityKey, foreignCurve, time.Time{}, "ca.crt: its key: not a key on P-256"},
		"a key in another form":                     {keyAuthorityKey, bytes.ReplaceAll(data[keyAuthorityKey], []byte("PRIVATE"), []byte("EC PRIVATE")), time.Time{}, "ca.crt: its key: not one private key in PEM"},
		"two keys":                                  {keyAuthorityKey, bytes.Repeat(data[keyAuthorityKey], 2), time.Time{}, "ca.crt: its key: not one private key in PEM"},
		"a key that is no key":                      {keyAuthorityKey, []byte("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"), time.Time{}, "ca.crt: its key: asn1"},
		"an authority that has expired":             {keyAuthority, data[keyAuthority], time.Now().Add(366 * day), "only"},
		"an authority of the future":                {keyAuthority, data[keyAuthority], time.Now().Add(-2 * time.Hour), "only"},
		"a next authority without key":              {keyNextKey, nil, time.Time{}, "next-ca.crt: its key: not one private key in PEM"},
		"an authority for somebody else":            {keyAuthority, stranger(t, day, "other.default.svc")[keyAuthority], time.Time{}, "ca.crt: the key is not that of the certificate"},
		"a leaf without key":                        {keyLeafKey, nil, time.Time{}, "tls.crt: its key: not one private key in PEM"},
		"a leaf with its authority, as others have": {keyLeaf, slices.Concat(data[keyLeaf], data[keyAuthority]), time.Time{}, "tls.crt: 2 certificates, want one"},
		"a key without leaf":                        {keyLeaf, nil, time.Time{}, "tls.crt: 0 certificates, want one"},
	} {
		t.Run(name, func(t *testing.T) {
			spoilt := maps.Clone(data)
			spoilt[c.key] = c.value
			if c.now.IsZero() {
				c.now = time.Now()
			}
			s, faults := parse(spoilt, names.hosts(), c.now)
			if !slices.ContainsFunc(faults, func(err error) bool { return strings.Contains(err.Error(), c.want) }) {
				t.Errorf("%v, want %s", faults, c.want)
			}
			switch c.key {
			case keyAuthority, keyAuthorityKey:
				if s.current != nil {
					t.Error("there is an authority")
				}
			case keyNextKey:
				if s.next != nil {
					t.Error("there is a next authority")
				}
			case keyPrevious:
				if s.previous != nil {
					t.Error("there are previous authorities")
				}
			default:
				if s.leaf != nil {
					t.Error("there is a leaf")
				}
			}
		})
	}
}

func TestAnAuthorityOfAnotherSortIsNotFitToSign(t *testing.T) {
	for name, c := range map[string]struct {
		hosts []string
		spoil func(*x509.Certificate)
		want  string
	}{
		"for another service":       {[]string{"other.default.svc"}, func(*x509.Certificate) {}, "is for"},
		"for more than the service": {append(names.hosts(), "example.com"), func(*x509.Certificate) {}, "is for"},
		"for an address":            {append(names.hosts(), "10.96.0.20"), func(*x509.Certificate) {}, "is for"},
		"for everybody":             {nil, func(*x509.Certificate) {}, "is for"},
		"not an authority":          {names.hosts(), func(c *x509.Certificate) { c.IsCA = false }, "not an authority's"},
		"not for signing":           {names.hosts(), func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageDigitalSignature }, "not an authority's"},
		"signed by another":         {names.hosts(), func(c *x509.Certificate) { c.Signature = []byte("x") }, "not signed by itself"},
	} {
		a, err := NewAuthority(c.hosts, time.Now(), day)
		if err != nil {
			t.Fatal(err)
		}
		c.spoil(a.certificate)
		if err := fits(a.certificate, names.hosts()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnAuthorityVouchesForNobodyElse(t *testing.T) {
	a, err := NewAuthority(names.hosts(), time.Now(), 365*day)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"kubernetes.default.svc", "pipeguard-webhook.other.svc", "pipeguard-system.svc", "example.com", "localhost"} {
		if leaf, err := a.Issue([]string{host}, time.Now(), day); err == nil {
			t.Errorf("issued %v", leaf.Leaf.DNSNames)
		}
	}
	leaf, err := a.Issue(names.hosts(), time.Now(), 1000*day)
	if err != nil {
		t.Fatal(err)
	}
	if leaf.Leaf.NotAfter.After(a.certificate.NotAfter) {
		t.Error("a leaf outlives its authority")
	}
	if a.certificate.SerialNumber.BitLen() < 64 || leaf.Leaf.SerialNumber.Cmp(a.certificate.SerialNumber) == 0 {
		t.Errorf("serials %x and %x", a.certificate.SerialNumber, leaf.Leaf.SerialNumber)
	}
	if leaf.Leaf.IsCA || !slices.Equal(leaf.Leaf.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}) {
		t.Error("a leaf is for more than serving")
	}
}

func FuzzParse(f *testing.F) {
	data := good(f)
	f.Add(data[keyAuthority], data[keyAuthorityKey], data[keyLeaf], data[keyLeafKey], data[keyPrevious])
	f.Add(data[keyNext], data[keyNextKey], data[keyAuthority], data[keyAuthorityKey], data[keyLeaf])
	f.Add([]byte("-----BEGIN CERTIFICATE-----"), []byte("-----BEGIN PRIVATE KEY-----"), []byte{}, []byte("\n"), []byte("\x00"))
	now := time.Now()
	f.Fuzz(func(t *testing.T, ca, key, leaf, leafKey, previous []byte) {
		s, faults := parse(map[string][]byte{keyAuthority: ca, keyAuthorityKey: key, keyLeaf: leaf, keyLeafKey: leafKey, keyPrevious: previous}, names.hosts(), now)
		if s.current != nil {
			if err := fits(s.current.certificate, names.hosts()); err != nil || !s.current.key.PublicKey.Equal(s.current.certificate.PublicKey) {
				t.Errorf("an authority was read that cannot sign: %v", err)
			}
		}
		if s.current == nil && s.leaf == nil && len(s.previous) == 0 && len(faults) == 0 && len(ca)+len(key)+len(leaf)+len(leafKey)+len(bytes.TrimSpace(previous)) > 0 {
			if all, err := decodeCertificates(previous); err != nil || len(all) == 0 { // or they have expired
				t.Error("content disappeared without a fault")
			}
		}
		encoded, err := s.encode()
		if err != nil {
			t.Fatal(err)
		}
		again, faults := parse(encoded, names.hosts(), now)
		if len(faults) > 0 || again.parts() != s.parts() {
			t.Errorf("what was written does not read the same: %v", faults)
		}
	})
}
