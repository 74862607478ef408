//go:build !windows

package integration

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/test/integration/cluster"
)

// asker is an HTTP client as a node is one: it verifies the certificate by the Service's name, and has none of its own.
func asker(t *testing.T, replica *cluster.Replica) *http.Client {
	t.Helper()
	roots := x509.NewCertPool()
	authorities, err := at(t).trusted(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range authorities {
		roots.AddCert(c)
	}
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, replica.Address)
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: limit}
}

// bundleAnswer is what a replica says about the bundle of a pool.
type bundleAnswer struct {
	status int
	etag   string
	body   []byte
}

func ask(ctx context.Context, c *http.Client, method, path, etag string) (bundleAnswer, error) {
	r, err := http.NewRequestWithContext(ctx, method, "https://"+cluster.ServiceHost+path, nil)
	if err != nil {
		return bundleAnswer{}, err
	}
	if etag != "" {
		r.Header.Set("If-None-Match", etag)
		r.Header.Set("Prefer", "modes=snapshot;wait=55")
	}
	res, err := c.Do(r)
	if err != nil {
		return bundleAnswer{}, err
	}
	body, err := io.ReadAll(res.Body)
	return bundleAnswer{res.StatusCode, res.Header.Get("ETag"), body}, errors.Join(err, res.Body.Close())
}

func servesEverywhere(t *testing.T, s *signed) {
	t.Helper()
	keys := s.keys
	first := s.publishes(t, diskPolicy(namespace(t, "mine", driver)))
	writers := 0
	for _, replica := range s.Replicas {
		c := asker(t, replica)
		eventually(t, replica.Pod+" serves it", func(ctx context.Context) error {
			a, err := ask(ctx, c, http.MethodGet, "/bundles/default", "")
			if err != nil || a.status != http.StatusOK {
				return errors.Join(err, fmt.Errorf("status %d", a.status))
			}
			b, _, err := keys.Verify(a.body)
			if err == nil && b.Revision < first.Revision {
				err = fmt.Errorf("revision %d", b.Revision)
			}
			return err
		})
		for _, r := range []struct {
			method, path string
			want         int
		}{
			{http.MethodGet, "/bundles/gpu.tar.gz", http.StatusOK},
			{http.MethodGet, "/bundles/others", http.StatusNotFound},
			{http.MethodGet, "/bundles/", http.StatusNotFound},
			{http.MethodPost, "/bundles/default", http.StatusMethodNotAllowed},
			{http.MethodDelete, "/bundles/default", http.StatusMethodNotAllowed},
		} {
			if a, err := ask(t.Context(), c, r.method, r.path, ""); err != nil || a.status != r.want {
				t.Errorf("%s %s: %d, want %d: %v", r.method, r.path, a.status, r.want, err)
			}
		}
		text, err := replica.Metrics(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(text, `pipeguard_bundle_publications_total{pool="default",result="written"}`) {
			writers++
			for _, want := range []string{`pipeguard_bundle_published_revision{pool="gpu"} `, `pipeguard_bundle_published_expiry_timestamp_seconds{pool="default"} `} {
				if !strings.Contains(text, want) {
					t.Errorf("the leader has no series %s", want)
				}
			}
		}
	}
	if writers != 1 {
		t.Errorf("%d replicas write", writers)
	}
}

func goesOn(t *testing.T, s *signed) {
	t.Helper()
	keys := s.keys
	p := diskPolicy(namespace(t, "mine", driver))
	first := s.publishes(t, p)
	leads := s.Replicas[0]
	for _, replica := range s.Replicas {
		if text, err := replica.Metrics(t.Context()); err != nil {
			t.Fatal(err)
		} else if strings.Contains(text, "pipeguard_bundle_published_revision{") {
			leads = replica
		}
	}
	if err := s.StopReplica(context.WithoutCancel(t.Context()), leads); err != nil {
		t.Fatal(err)
	}
	next := s.Replicas[0]
	eventually(t, "the other one publishes", func(ctx context.Context) error {
		text, err := next.Metrics(ctx)
		if err == nil && !strings.Contains(text, "pipeguard_bundle_published_revision{") {
			err = errors.New("it has no series")
		}
		return err
	})
	text, err := next.Metrics(t.Context())
	if err != nil || !strings.Contains(text, `pipeguard_bundle_publications_total{pool="default",result="written"} 0`) {
		t.Errorf("it has written the same again: %v", err)
	}
	if now := newer(t, keys, "default", 0); now.Revision != first.Revision {
		t.Errorf("revision %d, and it was %d", now.Revision, first.Revision)
	}
	changed(t, p, func() { p.Spec.Subjects[0].Containers = []string{"another"} })
	newer(t, keys, "default", first.Revision)
	become(t, p, v1alpha1.ConditionBundlesPublished, metav1.ConditionTrue)
}

func hears(t *testing.T, s *signed) {
	t.Helper()
	keys := s.keys
	p := diskPolicy(namespace(t, "mine", driver))
	first := s.publishes(t, p)
	last := s.Replicas[1]
	c := asker(t, last)
	var now bundleAnswer
	eventually(t, "the second replica serves it", func(ctx context.Context) (err error) {
		now, err = ask(ctx, c, http.MethodGet, "/bundles/default", "")
		if err == nil && now.status != http.StatusOK {
			err = fmt.Errorf("status %d", now.status)
		}
		if err != nil {
			return err
		}
		b, _, err := keys.Verify(now.body)
		if err == nil && b.Revision < first.Revision {
			err = fmt.Errorf("it still serves revision %d", b.Revision)
		}
		return err
	})
	type result struct {
		bundleAnswer
		err error
	}
	wait := func(etag string) <-chan result {
		out := make(chan result, 1)
		go func() {
			a, err := ask(t.Context(), c, http.MethodGet, "/bundles/default", etag)
			out <- result{a, err}
		}()
		return out
	}
	waiting := wait(now.etag)
	changed(t, p, func() { p.Spec.Subjects[0].Containers = []string{"another"} })
	heard := <-waiting
	if heard.err != nil || heard.status != http.StatusOK {
		t.Fatalf("status %d, %v", heard.status, heard.err)
	}
	if b, _, err := keys.Verify(heard.body); err != nil || b.Revision <= first.Revision {
		t.Errorf("revision %d follows %d: %v", b.Revision, first.Revision, err)
	}
	become(t, p, v1alpha1.ConditionBundlesPublished, metav1.ConditionTrue)
	if heard.bundleAnswer, heard.err = ask(t.Context(), c, http.MethodGet, "/bundles/default", ""); heard.err != nil {
		t.Fatal(heard.err)
	}

	waiting = wait(heard.etag)
	eventually(t, "the request waits", func(ctx context.Context) error {
		text, err := last.Metrics(ctx)
		if err == nil && !strings.Contains(text, `controller_runtime_webhook_requests_in_flight{webhook="/bundles/"} 1`) {
			err = errors.New("no request is in flight")
		}
		return err
	})
	begin := time.Now()
	if err := s.StopReplica(context.WithoutCancel(t.Context()), last); err != nil {
		t.Fatal(err)
	}
	took := time.Since(begin)
	if end := <-waiting; end.err != nil || end.status != http.StatusNotModified {
		t.Errorf("at the end: status %d, %v", end.status, end.err)
	}
	if took > 20*time.Second {
		t.Errorf("the replica waited %s for who waits", took)
	}
}
