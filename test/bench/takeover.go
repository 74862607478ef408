//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/test/bench/process"
	"github.com/pipeguard/pipeguard/test/harness"
)

// takeover is how long policies are on their way.
type takeover struct {
	Policies int `json:"policies"` // that are stored meanwhile
	Replicas int `json:"replicas"`
	// Stored is the API server's answer to a policy that is applied, with the webhook's trial of it.
	Stored quantiles `json:"stored"`
	// Applied and Removed are from sending the request until every replica decides by it.
	Applied quantiles `json:"applied"`
	Removed quantiles `json:"removed"`
}

// applied starts a second replica, and applies and removes a policy again and again.
func applied(ctx context.Context, s *stage, f *figures) error {
	second, err := s.release.AddReplica(ctx)
	if err != nil {
		return err
	}
	if err := second.AwaitReady(ctx); err != nil {
		return err
	}
	return takeOver(ctx, s, f)
}

// takeOver applies a policy that takes a pipe from the driver, so that a review tells who decides by it.
func takeOver(ctx context.Context, s *stage, f *figures) error {
	body, err := s.reviewOf(ctx, driver)
	if err != nil {
		return err
	}
	t := takeover{Replicas: len(s.release.Replicas)}
	list := &v1alpha1.PipePolicyList{}
	if err := s.api.Client.List(ctx, list); err != nil {
		return fmt.Errorf("count policies: %w", err)
	}
	t.Policies = len(list.Items)
	var stored, applied, removed []time.Duration
	for range s.size.applications {
		p := pipePolicy("takes-a-pipe", "csi-proxy-disk-v1")
		start := time.Now()
		if err := s.api.Client.Create(ctx, p); err != nil {
			return fmt.Errorf("apply a policy: %w", err)
		}
		stored = append(stored, time.Since(start))
		if err := s.decided(ctx, body, false); err != nil {
			return err
		}
		applied = append(applied, time.Since(start))
		start = time.Now()
		if err := s.api.Client.Delete(ctx, p); err != nil {
			return fmt.Errorf("remove a policy: %w", err)
		}
		if err := s.decided(ctx, body, true); err != nil {
			return err
		}
		removed = append(removed, time.Since(start))
	}
	t.Stored, t.Applied, t.Removed = quantilesOf(stored), quantilesOf(applied), quantilesOf(removed)
	f.Takeovers = append(f.Takeovers, t)
	return nil
}

// decided returns when every replica answers a review so.
func (s *stage) decided(ctx context.Context, body []byte, allowed bool) error {
	faults := make([]error, len(s.release.Replicas))
	var wait sync.WaitGroup
	for i, r := range s.release.Replicas {
		wait.Go(func() {
			deadline := time.Now().Add(2 * time.Minute)
			for {
				is, err := s.asker.isAllowed(ctx, r.Address, body)
				if err == nil && is == allowed {
					return
				}
				if errors.Is(err, errUndecided) {
					err = nil
				}
				if err == nil && time.Now().After(deadline) {
					err = fmt.Errorf("%s did not answer allowed=%t within two minutes", r.Pod, allowed)
				}
				if err == nil {
					err = pause(ctx, 5*time.Millisecond)
				}
				if err != nil {
					faults[i] = err
					return
				}
			}
		})
	}
	wait.Wait()
	for _, err := range faults {
		if err != nil {
			return err
		}
	}
	return nil
}

// many is what a large number of policies takes.
type many struct {
	Policies int `json:"policies"`
	// Created is until the last was stored, Decided until both replicas decide by all of them, Told until the status
	// of each says so.
	Created time.Duration `json:"created"`
	Decided time.Duration `json:"decided"`
	Told    time.Duration `json:"told"`
}

// stored applies many policies, and looks at everything once more.
func stored(ctx context.Context, s *stage, f *figures) error {
	// Each would be tried together with all others; it is the way from storing to deciding that is measured here.
	if err := s.release.SuspendPolicies(ctx); err != nil {
		return err
	}
	for _, r := range s.release.Replicas {
		if err := process.ResetMost(r.PID()); err != nil {
			return err
		}
	}
	if err := pause(ctx, time.Second); err != nil { // until the API server has heard of it
		return err
	}
	began := time.Now()
	if _, err := together(8, func(i int64) (bool, error) {
		if i >= int64(s.size.policies) {
			return false, nil
		}
		name := fmt.Sprintf("stored-%04d", i)
		return true, s.api.Client.Create(ctx, pipePolicy(name, v1alpha1.PipePattern(name+"-*")))
	}); err != nil {
		return fmt.Errorf("store policies: %w", err)
	}
	m := many{Policies: s.size.policies, Created: time.Since(began)}
	// What is stored after all of them is decided by together with them, or later.
	body, err := s.reviewOf(ctx, driver)
	if err != nil {
		return err
	}
	last := pipePolicy("takes-a-pipe", "csi-proxy-disk-v1")
	if err := s.api.Client.Create(ctx, last); err != nil {
		return fmt.Errorf("apply a policy: %w", err)
	}
	if err := s.decided(ctx, body, false); err != nil {
		return err
	}
	m.Decided = time.Since(began)
	if err := s.api.Client.Delete(ctx, last); err != nil {
		return fmt.Errorf("remove a policy: %w", err)
	}
	if err := s.decided(ctx, body, true); err != nil {
		return err
	}
	if err := s.allReady(ctx); err != nil {
		return err
	}
	m.Told = time.Since(began)
	f.Many = m
	if err := pause(ctx, 3*s.size.idle); err != nil { // what the work has left behind goes
		return err
	}
	s.asker.client.CloseIdleConnections() // which the webhook may be about to close
	for i, r := range s.release.Replicas {
		who := "leader"
		if i > 0 {
			who = "another replica"
		}
		if err := f.remember(fmt.Sprintf("%d policies, %s", m.Policies, who), r); err != nil {
			return err
		}
	}
	for _, kind := range []string{driver, refused} {
		if err := loadWhile(ctx, s, f, kind, fmt.Sprintf("%d policies are stored", m.Policies), s.size.loadBlock); err != nil {
			return err
		}
	}
	if err := s.release.ResumePolicies(ctx); err != nil {
		return err
	}
	if err := pause(ctx, 2*time.Second); err != nil { // the leader fills in the authority
		return err
	}
	s.size.applications = min(s.size.applications, 4)
	if err := takeOver(ctx, s, f); err != nil {
		return err
	}
	if err := s.allReady(ctx); err != nil {
		return err
	}
	if err := pause(ctx, s.size.idle/2); err != nil { // the last scan ends
		return err
	}
	return f.lookAround(ctx, s.size.idle/2)
}

// allReady returns when the status of every policy names the revision that decides: the leader writes them one by one, also
// those that were ready before.
func (s *stage) allReady(ctx context.Context) error {
	return harness.Await(ctx, awaitLimit, func(ctx context.Context) error {
		now, err := reading(ctx, s.first())
		if err != nil {
			return err
		}
		list := &v1alpha1.PipePolicyList{}
		if err := s.api.Client.List(ctx, list); err != nil {
			return err
		}
		for i := range list.Items {
			p := &list.Items[i]
			isActive := now[`pipeguard_policy_info{revision="`+p.Status.Revision+`"}`] == 1
			if !isActive || !meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionReady) {
				return fmt.Errorf("the status of PipePolicy %s does not say yet that it decides", p.Name)
			}
		}
		return nil
	})
}
