package main

import (
	"context"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/policy"
)

func TestTheCertificateIsReplacedBeforeItExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, err := newIssuer([]string{"localhost", "127.0.0.1"}, time.Now, zap.NewNop())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- i.Start(ctx) }()
		roots := x509.NewCertPool()
		roots.AddCert(i.authority)
		serials := map[string]bool{}
		for range 10 {
			cert, err := i.GetCertificate(nil)
			if err != nil {
				t.Fatal(err)
			}
			serials[cert.Leaf.SerialNumber.String()] = true
			if _, err := cert.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "127.0.0.1", CurrentTime: time.Now()}); err != nil {
				t.Errorf("at %s: %v", time.Now(), err)
			}
			if left := time.Until(cert.Leaf.NotAfter); left > leafLifetime || left < leafLifetime/3 {
				t.Errorf("%s of the certificate's life are left", left)
			}
			time.Sleep(7 * time.Hour) // of the test's own clock
			synctest.Wait()
		}
		if len(serials) < 4 {
			t.Errorf("%d certificates in 70 hours, want at least 4", len(serials))
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestTheAuthorityVouchesForItsOwnHostsOnly(t *testing.T) {
	for name, c := range map[string]struct{ hosts, good, bad []string }{
		"a name and an address": {[]string{"localhost", "127.0.0.1"}, []string{"localhost", "127.0.0.1"}, []string{"example.com", "127.0.0.2", "::1"}},
		"names only":            {[]string{"webhook.svc"}, []string{"webhook.svc"}, []string{"127.0.0.1", "example.com"}},
		"addresses only":        {[]string{"::1"}, []string{"::1"}, []string{"localhost", "127.0.0.1"}},
	} {
		t.Run(name, func(t *testing.T) {
			i, err := newIssuer(c.hosts, time.Now, zap.NewNop())
			if err != nil {
				t.Fatal(err)
			}
			verify := func(cert *x509.Certificate, host string) error {
				roots := x509.NewCertPool()
				roots.AddCert(i.authority)
				_, err := cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: host})
				return err
			}
			for _, host := range c.good {
				if err := verify(i.leaf.Load().Leaf, host); err != nil {
					t.Errorf("%s: %v", host, err)
				}
			}
			for _, host := range c.bad {
				// What the authority would sign for another host, were its key stolen.
				other, err := newIssuer([]string{host}, time.Now, zap.NewNop())
				if err != nil {
					t.Fatal(err)
				}
				other.authority, other.key = i.authority, i.key
				if err := other.issue(); err != nil {
					t.Fatal(err)
				}
				if err := verify(other.leaf.Load().Leaf, host); err == nil {
					t.Errorf("%s is vouched for", host)
				}
			}
		})
	}
}

func TestParseNamespaces(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want namespaceLabels
	}{
		"a mapping":      {"a: {x: z}\nb:\n", namespaceLabels{"a": {"x": "z"}, "b": nil}},
		"objects":        {"apiVersion: v1\nkind: Namespace\nmetadata: {name: a, labels: {x: z}}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: b}\n", namespaceLabels{"a": {"x": "z"}, "b": nil}},
		"a list":         {"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Namespace, metadata: {name: a, labels: {x: z}}}\n", namespaceLabels{"a": {"x": "z"}}},
		"an empty file":  {"", namespaceLabels{}},
		"only a comment": {"# none\n", namespaceLabels{}},

		"another kind":             {"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n", nil},
		"another kind in a list":   {"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: a}}\n", nil},
		"a Namespace of no name":   {"apiVersion: v1\nkind: Namespace\n", nil},
		"a namespace twice":        {"a: {}\n---\na: {}\n", nil},
		"labels that are numbers":  {"a: {x: 1}\n", nil},
		"labels that are booleans": {"a: {x: y}\n", nil},
		"a list of names":          {"[a, b]\n", nil},
		"text that is not YAML":    {"a: [\n", nil},
		"an unknown field":         {"apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\nlabels: {x: z}\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseNamespaces([]byte(c.text))
			if (err != nil) != (c.want == nil) {
				t.Fatalf("error %v", err)
			}
			if diff := cmp.Diff(c.want, got); err == nil && diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
		})
	}
}

// stalled is a writer that takes nothing until it is released.
type stalled struct {
	release chan struct{}
	taken   []string
	err     error
}

func (s *stalled) Append(_ context.Context, e *audit.Event) (uint64, error) {
	<-s.release
	if s.err == nil {
		s.taken = append(s.taken, e.ID)
	}
	return uint64(len(s.taken)), s.err
}

// admitted is the record of an object that passed, refused that of one that did not.
func admitted() *audit.Event {
	return &audit.Event{ID: "x", Decision: &audit.Decision{Effect: audit.EffectAllow}}
}

func refused() *audit.Event {
	return &audit.Event{ID: "refused", Decision: &audit.Decision{Effect: audit.EffectDeny}}
}

func TestTheRecordOfARefusalIsNeverDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &stalled{release: make(chan struct{})}
		r := &records{to: to, close: func() error { return nil }, failed: func(err error) { t.Errorf("failed: %v", err) }}
		r.start()
		for range maxWaiting + 1 {
			_, _ = r.Append(t.Context(), admitted())
			synctest.Wait() // one is taken by the writer
		}
		if _, err := r.Append(t.Context(), admitted()); !errors.Is(err, errFull) {
			t.Fatalf("the queue is not full: %v", err)
		}
		const refusals = 100
		answered := make(chan error, refusals)
		for range refusals {
			go func() {
				_, err := r.Append(t.Context(), refused())
				answered <- err
			}()
		}
		synctest.Wait()
		if len(answered) > 0 {
			t.Fatal("a refusal did not wait for its turn")
		}
		close(to.release)
		for range refusals {
			if err := <-answered; err != nil {
				t.Error(err)
			}
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		written := 0
		for _, id := range to.taken {
			if id == "refused" {
				written++
			}
		}
		if written != refusals {
			t.Errorf("%d refusals were written, want %d", written, refusals)
		}
	})
}

func TestTheEndLetsGoOfRefusalsThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &stalled{release: make(chan struct{})}
		r := &records{to: to, close: func() error { return nil }, failed: func(error) {}}
		r.start()
		for range maxWaiting + 1 {
			_, _ = r.Append(t.Context(), admitted())
			synctest.Wait()
		}
		answered := make(chan error, 1)
		go func() {
			_, err := r.Append(t.Context(), refused())
			answered <- err
		}()
		synctest.Wait()
		if err := r.Close(); !errors.Is(err, errStuck) {
			t.Errorf("closed with %v", err)
		}
		if err := <-answered; !errors.Is(err, errClosed) {
			t.Errorf("answered with %v", err)
		}
		close(to.release)
		<-r.done
	})
}

func TestAStalledReaderOfRecordsStopsNobody(t *testing.T) {
	to := &stalled{release: make(chan struct{})}
	r := &records{to: to, close: func() error { return nil }, failed: func(err error) { t.Errorf("failed: %v", err) }}
	r.start()
	refused := 0
	for range maxWaiting + 100 {
		if _, err := r.Append(t.Context(), admitted()); errors.Is(err, errFull) {
			refused++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if refused < 99 { // one may be on its way
		t.Errorf("%d records were refused, want 99 or 100", refused)
	}
	close(to.release)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if got := len(to.taken); got != maxWaiting+100-refused {
		t.Errorf("%d records were written, want all %d that were taken", got, maxWaiting+100-refused)
	}
	if _, err := r.Append(t.Context(), &audit.Event{}); !errors.Is(err, errClosed) {
		t.Errorf("after the end: %v", err)
	}
}

func TestTheEndDoesNotWaitForeverForRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &stalled{release: make(chan struct{})}
		r := &records{to: to, close: func() error { return nil }, failed: func(error) {}}
		r.start()
		if _, err := r.Append(t.Context(), &audit.Event{}); err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); !errors.Is(err, errStuck) {
			t.Errorf("closed with %v, want %v", err, errStuck)
		}
		close(to.release)
		<-r.done
	})
}

func TestARecordThatFailsLaterIsReported(t *testing.T) {
	var reported []error
	to := &stalled{release: make(chan struct{}), err: os.ErrClosed}
	close(to.release)
	r := &records{to: to, close: func() error { return nil }, failed: func(err error) { reported = append(reported, err) }}
	r.start()
	if _, err := r.Append(t.Context(), &audit.Event{}); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if len(reported) != 1 || !errors.Is(reported[0], os.ErrClosed) {
		t.Errorf("reported %v", reported)
	}
}

func TestRecordsAreWrittenAtOnceWhereTheyAreRequired(t *testing.T) {
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	r, err := openRecords(options{auditLog: file, auditRequired: true}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	seq, err := r.Append(t.Context(), &audit.Event{Type: audit.TypeAdmission, Stage: audit.StageResponseComplete, ID: "now"})
	if err != nil || seq == 0 {
		t.Fatalf("number %d, %v", seq, err)
	}
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), `"id":"now"`) {
		t.Errorf("the file holds %q, %v", text, err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func TestParametersOfTheBuiltInPolicyAreReadAgain(t *testing.T) {
	params := filepath.Join(t.TempDir(), "parameters.yaml")
	write(t, params, "hostProcess: Warn\n")
	s, _, logs, err := newTestServer(t, "--params="+params)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, e := range s.endpoints {
			_ = e.listener.Close()
		}
		_ = s.records.Close()
	})
	activated := make(chan string, 10)
	s.policies.poll = time.Millisecond
	s.policies.attempted = func(now policy.Snapshot, err error) {
		s.attempted(now, err)
		if err == nil {
			activated <- now.Revision()
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.policies.run(ctx) }()
	first := <-activated
	write(t, params, "hostProcess: Maybe\n") // refused: the parameters before it stay
	eventually(t, "the fault is reported", func() bool { return logs.FilterMessage("policies not activated").Len() == 1 })
	if now, _ := s.policies.engine.Active(); now.Revision() != first {
		t.Error("parameters with a fault were activated")
	}
	write(t, params, "hostProcess: Deny\n")
	if second := <-activated; second == first {
		t.Error("the revision is the same with other parameters")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
