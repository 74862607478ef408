//go:build linux

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pipeguard/pipeguard/test/integration/cluster"
)

// asker sends reviews to a replica as the API server does: by TLS, over connections that stay.
type asker struct{ client *http.Client }

func newAsker(authority []byte) (*asker, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return nil, errors.New("the webhook configuration's authority is no certificate")
	}
	return &asker{&http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		TLSClientConfig:     &tls.Config{RootCAs: roots, ServerName: cluster.ServiceHost, MinVersion: tls.VersionTLS12},
		MaxIdleConnsPerHost: 256,
	}}}, nil
}

// review is the body for a pod as the API server would send it, made of the pod as it has returned it.
func review(answer []byte, namespace string) ([]byte, error) {
	var object metav1.PartialObjectMetadata
	if err := json.Unmarshal(answer, &object); err != nil {
		return nil, fmt.Errorf("read a pod: %w", err)
	}
	raw := bytes.ReplaceAll(answer, []byte(`"namespace":"`+object.Namespace+`"`), []byte(`"namespace":"`+namespace+`"`))
	return marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "b57a6a9e-5a0d-4a5b-8b1f-4a3f4f0f5c11", Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Pod"},
			Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"}, Name: object.Name, Namespace: namespace,
			Operation: admissionv1.Create, DryRun: new(false), Object: runtime.RawExtension{Raw: raw},
			UserInfo: authenticationv1.UserInfo{
				Username: "system:serviceaccount:kube-system:daemon-set-controller",
				Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"},
			},
		},
	}), nil
}

// reviewOf is the body for a kind of pod.
func (s *stage) reviewOf(ctx context.Context, kind string) ([]byte, error) {
	answer, err := s.creator.create(ctx, order{Variant: nothing, Pod: kind})
	if err != nil {
		return nil, err
	}
	return review(answer, namespaceOf(webhook, kind))
}

// isAllowed sends one review.
func (a *asker) isAllowed(ctx context.Context, address string, body []byte) (bool, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+address+"/validate", bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	req.Header.Set("Content-Type", "application/json")
	response, err := a.client.Do(req)
	if errors.Is(err, syscall.ECONNRESET) { // a server that falls behind takes only so many connections from one address
		return false, errUndecided
	}
	if err != nil {
		return false, fmt.Errorf("send a review: %w", err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return false, fmt.Errorf("send a review: %w", err)
	}
	switch {
	case response.StatusCode == http.StatusServiceUnavailable: // too many at once
		return false, errUndecided
	case response.StatusCode != http.StatusOK:
	case bytes.Contains(answer, []byte(`"allowed":true`)):
		return true, nil
	case bytes.Contains(answer, []byte(undecidedCode)):
		return false, errUndecided
	case bytes.Contains(answer, []byte(`"allowed":false`)):
		return false, nil
	}
	return false, fmt.Errorf("send a review: status %d: %s", response.StatusCode, answer)
}

// steadily sends reviews at the rate, whether or not those before were answered, and returns what each took from the
// moment at which it was to be sent: a server that falls behind cannot hide it. undecided is how many were refused
// without a decision.
func (a *asker) steadily(ctx context.Context, address string, body []byte, allowed bool, d time.Duration) (took []time.Duration, undecided int, err error) {
	const interval = time.Second / rate
	took = make([]time.Duration, d/interval)
	var n atomic.Int64
	var once sync.Once
	var failed error
	var wait sync.WaitGroup
	start := time.Now()
	for i := range took {
		due := start.Add(time.Duration(i) * interval)
		if err := pause(ctx, time.Until(due)); err != nil {
			once.Do(func() { failed = err })
			break
		}
		wait.Go(func() {
			is, err := a.isAllowed(ctx, address, body)
			took[i] = time.Since(due)
			if errors.Is(err, errUndecided) {
				n.Add(1)
				return
			}
			if err == nil && is != allowed {
				err = fmt.Errorf("a review was answered with allowed=%t", is)
			}
			if err != nil {
				once.Do(func() { failed = err })
			}
		})
	}
	wait.Wait()
	return took, int(n.Load()), failed
}
