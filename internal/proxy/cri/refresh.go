package cri

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/pipeguard/pipeguard/internal/proxy/peer"
)

var errClosed = errors.New("the container runtime is asked no more")

// question is a list that is asked for, or will be.
type question struct {
	answered chan struct{} // closed once the rest is there
	list     []peer.Candidate
	err      error
}

// Refresh implements peer.Containers. However many ask at once, the runtime is asked by one at a time. An answer that was
// under way before may lack what the caller wants to know of, so that all who come meanwhile share the one after it.
func (c *Client) Refresh(ctx context.Context) ([]peer.Candidate, error) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, errClosed
	}
	q := c.next
	if q == nil {
		q = &question{answered: make(chan struct{})}
		c.next = q
		if c.running == nil {
			c.start()
		}
	}
	c.mu.Unlock()
	select {
	case <-q.answered:
		return q.list, q.err
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for the container runtime: %w", ctx.Err())
	}
}

// start asks the next question. It is called with mu held.
func (c *Client) start() {
	q := c.next
	c.running, c.next = q, nil
	c.asking.Go(func() {
		q.list, q.err = c.ask()
		c.mu.Lock()
		c.running = nil
		if c.next != nil {
			c.start()
		}
		c.mu.Unlock()
		close(q.answered)
	})
}

// ask lists containers before sandboxes: what has a container then has a sandbox as well, unless it is going away.
func (c *Client) ask() ([]peer.Candidate, error) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(c.ctx, c.options.Timeout)
	defer cancel()
	list, err := c.list(ctx)
	if err != nil {
		c.lists.failed.Add(1)
		c.report(err.Error(), err)
		return nil, err
	}
	k := &known{list: list, began: began}
	for i := range list {
		if list[i].Fault != "" {
			k.faults++
		}
	}
	c.known.Store(k)
	c.lists.good.Add(1)
	c.report("answers", nil)
	return list, nil
}

func (c *Client) list(ctx context.Context) ([]peer.Candidate, error) {
	containers, err := c.runtime.ListContainers(ctx, &runtimeapi.ListContainersRequest{})
	if err != nil {
		return nil, fmt.Errorf("list containers: %w", err)
	}
	sandboxes, err := c.runtime.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
	if err != nil {
		return nil, fmt.Errorf("list sandboxes: %w", err)
	}
	return candidates(containers.GetContainers(), sandboxes.GetItems())
}

// report logs what has changed since it was asked last.
func (c *Client) report(what string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.said == what || c.closed {
		return
	}
	c.said = what
	if err != nil {
		c.options.Log.Warn("the container runtime does not answer: callers in containers that are not yet known are named by their processes", zap.Error(err))
		return
	}
	c.options.Log.Info("the container runtime answers")
}
