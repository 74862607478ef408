package certs

import (
	"crypto/tls"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// copies are configurations as a replica knows them.
type copies map[string]Configuration

func (c copies) LatestConfiguration(name string) (Configuration, bool) {
	found, ok := c[name]
	return found, ok
}

func TestAReplicaIsReadyOnlyIfEveryLiveConfigurationAcceptsItsCertificate(t *testing.T) {
	data := good(t)
	s, _ := parse(data, names.hosts(), time.Now())
	ours, foreign := data[keyAuthority], data[keyNext]
	both := append(append([]byte{}, foreign...), ours...)
	one, two := names.Configurations[0], names.Configurations[1]
	with := func(name string, bundles ...[]byte) Configuration {
		c := Configuration{Name: name, Version: "1"}
		for i, b := range bundles {
			c.Webhooks = append(c.Webhooks, Webhook{Name: string(rune('a' + i)), Bundle: b})
		}
		return c
	}
	for name, c := range map[string]struct {
		live copies
		in   time.Duration
		want []string // none: ready
	}{
		"both trust it":                 {copies{one: with(one, ours, ours), two: with(two, both)}, 0, nil},
		"nothing was read yet":          {copies{}, 0, []string{"configuration " + one + ": not read yet", "configuration " + two + ": not read yet"}},
		"one does not exist":            {copies{one: with(one, ours), two: {Name: two}}, 0, []string{"configuration " + two + ": does not exist"}},
		"one has no webhooks":           {copies{one: with(one), two: with(two, ours)}, 0, []string{"configuration " + one + ": has no webhooks"}},
		"one has no bundle":             {copies{one: with(one, ours, nil), two: with(two, ours)}, 0, []string{"configuration " + one + ": webhook b: caBundle holds no certificate"}},
		"a bundle is garbage":           {copies{one: with(one, []byte("garbage")), two: with(two, ours)}, 0, []string{"webhook a: caBundle holds no certificate"}},
		"a bundle is a stranger's":      {copies{one: with(one, ours, ours, foreign), two: with(two, ours)}, 0, []string{"configuration " + one + ": webhook c: caBundle does not accept", "unknown authority"}},
		"both are":                      {copies{one: with(one, foreign), two: with(two, foreign)}, 0, []string{"configuration " + one, "configuration " + two}},
		"the certificate has expired":   {copies{one: with(one, ours), two: with(two, ours)}, 30 * day, []string{"expired"}},
		"the certificate expires soon":  {copies{one: with(one, ours), two: with(two, ours)}, 30*day - 4*time.Minute, []string{"expired"}},
		"the certificate lasts a while": {copies{one: with(one, ours), two: with(two, ours)}, 30*day - 6*time.Minute, nil},
	} {
		metrics, begun := NewMetrics(nil), time.Now()
		chain, err := NewChain(ChainOptions{
			Names: names, Copy: c.live, Metrics: metrics, Now: func() time.Time { return begun.Add(c.in) },
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.leaf, nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		err = chain.Check(nil)
		if (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v", name, err)
		}
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v; lacks %s", name, err, want)
			}
		}
		if got := measured(t, metrics.expiry.WithLabelValues("serving")); got != float64(s.leaf.Leaf.NotAfter.Unix()) {
			t.Errorf("%s: expiry %v", name, got)
		}
	}
}

func TestAReplicaWithoutCertificateIsNotReady(t *testing.T) {
	for _, get := range []func(*tls.ClientHelloInfo) (*tls.Certificate, error){
		func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, errors.New("no file") },
		func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, nil },
		func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &tls.Certificate{}, nil },
	} {
		chain, err := NewChain(ChainOptions{Names: names, Copy: copies{}, GetCertificate: get})
		if err != nil {
			t.Fatal(err)
		}
		if err := chain.Check(nil); err == nil || !strings.HasPrefix(err.Error(), "certificate: ") {
			t.Error(err)
		}
	}
}

func TestReplicasStayReadyThroughAHandOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		defer lead(t, m.connect(), weeks)()
		f := follow(t, m.connect())
		time.Sleep(time.Minute)
		live := copies{}
		chain, err := NewChain(ChainOptions{Names: names, Copy: live, GetCertificate: f.GetCertificate})
		if err != nil {
			t.Fatal(err)
		}
		first := m.content()[keyAuthority]
		for range 30 * 24 * 2 {
			synctest.Wait()
			for _, name := range names.Configurations {
				live[name] = m.configuration(name)
			}
			if err := chain.Check(nil); err != nil {
				t.Fatal(err)
			}
			time.Sleep(30 * time.Minute)
		}
		if string(first) == string(m.content()[keyAuthority]) {
			t.Error("there was no hand-over")
		}
	})
}
