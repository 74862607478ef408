//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/test/bench/process"
	"github.com/pipeguard/pipeguard/test/harness"
)

// idle reads what the webhook holds and uses while nobody asks it.
func idle(ctx context.Context, s *stage, f *figures) error {
	r := s.first()
	if err := pause(ctx, s.size.idle/2); err != nil { // the start's work ends
		return err
	}
	if err := f.remember("since its start", r); err != nil {
		return err
	}
	cpu, err := process.CPU(r.PID())
	if err != nil {
		return err
	}
	if err := process.ResetMost(r.PID()); err != nil {
		return err
	}
	if err := f.lookAround(ctx, s.size.idle); err != nil {
		return err
	}
	after, err := process.CPU(r.PID())
	if err != nil {
		return err
	}
	f.IdleCPU = float64(after-cpu) / float64(s.size.idle)
	return f.remember("idle", r)
}

// scan is a pass of the background scan.
type scan struct {
	Pods int `json:"pods"`
	// Findings are those of guarded pipes, six for each pod that would be refused.
	Findings int           `json:"findings"`
	Took     time.Duration `json:"took"`
	// CPU is the process's, with taking over the policy that started the scan.
	CPU time.Duration `json:"cpu"`
}

// scanned fills the cluster up, and has what exists judged: a first time, and again while reviews are sent.
func scanned(ctx context.Context, s *stage, f *figures) error {
	there, err := countPods(ctx, s.api.Client)
	if err != nil {
		return err
	}
	began := time.Now()
	n := max(0, s.size.pods-there)
	if err := s.creator.many(ctx, n, func(i int64) order {
		kind := plain
		switch i % 100 {
		case 0:
			kind = refused
		case 1, 2, 3, 4:
			kind = driver
		}
		return order{Variant: nothing, Pod: kind}
	}); err != nil {
		return err
	}
	s.note("%d pods were there, %d more took %s", there, n, time.Since(began).Round(time.Millisecond))
	r := s.first()
	cpu, err := process.CPU(r.PID())
	if err == nil {
		err = process.ResetMost(r.PID())
	}
	if err != nil {
		return err
	}
	done, err := s.startScan(ctx, "scan-first")
	if err == nil {
		f.Scan, err = done(ctx)
	}
	if err != nil {
		return err
	}
	after, err := process.CPU(r.PID())
	if err != nil {
		return err
	}
	f.Scan.CPU = after - cpu
	when := fmt.Sprintf("scan of %d pods", f.Scan.Pods)
	if err := f.remember(when, r); err != nil {
		return err
	}
	if err := process.ResetMost(r.PID()); err != nil {
		return err
	}
	if done, err = s.startScan(ctx, "scan-second"); err != nil {
		return err
	}
	while := fmt.Sprintf("a policy is taken over and %d pods are scanned", f.Scan.Pods)
	if err := loadWhile(ctx, s, f, driver, while, 4*time.Second+f.Scan.Took); err != nil {
		return err
	}
	if _, err := done(ctx); err != nil {
		return err
	}
	return f.remember(when+" under load", r)
}

// startScan applies a policy of a pipe that nobody has, which starts a scan. done waits for its end.
func (s *stage) startScan(ctx context.Context, name string) (done func(context.Context) (scan, error), err error) {
	before, err := reading(ctx, s.first())
	if err != nil {
		return nil, err
	}
	was := before.histogram("pipeguard_scan_duration_seconds")
	if err := s.api.Client.Create(ctx, pipePolicy(name, v1alpha1.PipePattern(name+"-*"))); err != nil {
		return nil, fmt.Errorf("apply a policy: %w", err)
	}
	return func(ctx context.Context) (out scan, err error) {
		err = harness.Await(ctx, awaitLimit, func(ctx context.Context) error {
			now, err := reading(ctx, s.first())
			if err != nil {
				return err
			}
			pass := now.histogram("pipeguard_scan_duration_seconds").minus(was)
			if pass.count < 1 {
				return errors.New("the scan goes on")
			}
			out.Took = seconds(pass.sum / pass.count)
			if now, err = reading(ctx, s.first()); err != nil { // what was found is told right after the time
				return err
			}
			out.Pods = int(now[`pipeguard_scan_objects{kind="Pod"}`])
			out.Findings = int(now[`pipeguard_scan_findings{code="PG001",effect="deny"}`])
			return nil
		})
		return out, err
	}, nil
}

func pipePolicy(name string, pipes ...v1alpha1.PipePattern) *v1alpha1.PipePolicy {
	return &v1alpha1.PipePolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.PipePolicySpec{
		Pipes: pipes, Subjects: []v1alpha1.Subject{{Name: "node", Namespace: "drivers", ServiceAccounts: []string{name}, Containers: []string{"driver"}}},
	}}
}

func countPods(ctx context.Context, c client.Client) (int, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	if err := c.List(ctx, list, client.Limit(1)); err != nil {
		return 0, fmt.Errorf("count pods: %w", err)
	}
	n := len(list.Items)
	if list.RemainingItemCount != nil {
		n += int(*list.RemainingItemCount)
	}
	return n, nil
}
