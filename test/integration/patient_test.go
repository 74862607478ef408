//go:build !windows

package integration

import (
	"context"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// tooLate says whether a refusal is for want of time. A decision has a quarter of a second by the clock, and on a machine that does
// much else beside these tests that can be over before it began. It is a refusal and no decision, and no rule's fault.
func tooLate(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "PG999: Pipeguard refuses what it cannot judge (timeout)")
}

// patient is a client that asks again when there was no time for a decision. Tests of load count those instead.
type patient struct{ client.Client }

func (p patient) Create(ctx context.Context, o client.Object, options ...client.CreateOption) error {
	return again(func() error { return p.Client.Create(ctx, o, options...) })
}

func (p patient) Update(ctx context.Context, o client.Object, options ...client.UpdateOption) error {
	return again(func() error { return p.Client.Update(ctx, o, options...) })
}

func (p patient) Patch(ctx context.Context, o client.Object, patch client.Patch, options ...client.PatchOption) error {
	return again(func() error { return p.Client.Patch(ctx, o, patch, options...) })
}

func again(call func() error) (err error) {
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		if err = call(); !tooLate(err) || time.Since(began) > limit {
			return err
		}
	}
}
