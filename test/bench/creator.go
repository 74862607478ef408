//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"

	"github.com/pipeguard/pipeguard/internal/floor"
)

// order is a sort of request to the API server.
type order struct {
	Variant string `json:"variant"`
	Pod     string `json:"pod"`
	// Stored says that the pod is kept; without it the request is a trial (dryRun=All), which ends before etcd.
	Stored bool `json:"stored"`
	// Workers is how many requests are under way at one time.
	Workers int `json:"workers"`
}

// mustRefuse says whether such a pod must not come into being.
func (o order) mustRefuse() bool { return o.Pod == refused && o.Variant != nothing }

// creator creates pods as an administrator, with as little work on this side as possible.
type creator struct {
	client *http.Client
	host   string
	bodies map[order][]byte // by variant and pod
}

func newCreator(config *rest.Config) (*creator, error) {
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	host := strings.TrimSuffix(config.Host, "/")
	if !strings.Contains(host, "://") {
		host = "https://" + host
	}
	out := &creator{client: c, host: host, bodies: map[order][]byte{}}
	for _, v := range variants {
		for _, kind := range kinds {
			out.bodies[order{Variant: v, Pod: kind}] = marshal(pod(v, kind))
		}
	}
	return out, nil
}

// undecidedCode is in an answer of the webhook that refused because it came to no decision in time.
const undecidedCode = "PG999"

// errUndecided is no wrong verdict: on a starved machine it is what must come. How often it came is part of the figures.
var errUndecided = errors.New("refused without a decision")

// create returns the API server's answer. An error says that it is not the one that must come.
func (c *creator) create(ctx context.Context, o order) (answer []byte, err error) {
	url := c.host + "/api/v1/namespaces/" + namespaceOf(o.Variant, o.Pod) + "/pods"
	if !o.Stored {
		url += "?dryRun=All"
	}
	body := c.bodies[order{Variant: o.Variant, Pod: o.Pod}]
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	response, err := c.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("create a pod: %w", err)
	}
	defer response.Body.Close()
	if answer, err = io.ReadAll(response.Body); err != nil {
		return nil, fmt.Errorf("create a pod: %w", err)
	}
	want := http.StatusCreated
	if o.mustRefuse() {
		want = http.StatusForbidden
	}
	if response.StatusCode == http.StatusForbidden && bytes.Contains(answer, []byte(undecidedCode)) {
		return nil, errUndecided
	}
	if response.StatusCode != want || o.mustRefuse() && !bytes.Contains(answer, []byte(sign[o.Variant])) {
		return nil, fmt.Errorf("create a pod (%s, %s): status %d, want %d: %s", o.Variant, o.Pod, response.StatusCode, want, answer)
	}
	return answer, nil
}

// sign is part of a refusal by which it is told whose it is.
var sign = map[string]string{alone: floor.RefusalBegins, webhook: "PG001: container", both: floor.RefusalBegins}

// block sends requests for a while, and returns what each took and how many were refused without a decision.
func (c *creator) block(ctx context.Context, o order, d time.Duration) (took []time.Duration, undecided int, err error) {
	var n atomic.Int64
	end := time.Now().Add(d)
	took, err = together(o.Workers, func(_ int64) (bool, error) {
		_, err := c.create(ctx, o)
		if errors.Is(err, errUndecided) {
			n.Add(1)
			err = nil
		}
		return time.Now().Before(end), err
	})
	return took, int(n.Load()), err
}

// many creates n pods that are kept.
func (c *creator) many(ctx context.Context, n int, which func(i int64) order) error {
	_, err := together(16, func(i int64) (bool, error) {
		if i >= int64(n) {
			return false, nil
		}
		o := which(i)
		o.Stored = true
		_, err := c.create(ctx, o)
		return true, err
	})
	return err
}

// together calls do from workers with 0, 1, 2 and so on until it says that it is enough.
func together(workers int, do func(i int64) (more bool, err error)) ([]time.Duration, error) {
	var next atomic.Int64
	var mu sync.Mutex // guards took and failed
	var took []time.Duration
	var failed error
	var wait sync.WaitGroup
	for range workers {
		wait.Go(func() {
			var mine []time.Duration
			var err error
			for more := true; more && err == nil; {
				start := time.Now()
				more, err = do(next.Add(1) - 1)
				mine = append(mine, time.Since(start))
			}
			mu.Lock()
			defer mu.Unlock()
			took = append(took, mine...)
			if failed == nil {
				failed = err
			}
		})
	}
	wait.Wait()
	return took, failed
}
