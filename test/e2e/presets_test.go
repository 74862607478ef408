//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/floor"
	"github.com/pipeguard/pipeguard/test/harness"
)

// ungovernedPipe is guarded by the parameters, and named by no policy.
const ungovernedPipe = `\\.\pipe\csi-proxy-presets-v1`

// presetsFromObserveToStrict changes the preset as the guide says: observe, read the reports, then strict. The release has none before and after.
func presetsFromObserveToStrict(t *testing.T) {
	stranger := func() client.Object {
		return pod("default", "stranger", mounts(ungovernedPipe), onWindows, unscheduled)
	}
	selfStyled := func() client.Object {
		return pod("default", "self-styled", mounts(ungovernedPipe), onWindows, unscheduled, privileged)
	}
	defer func() { // a cleanup would have no more time
		upgrade(t, "--set=preset=,scanInterval=10m")
		harness.Eventually(t, readyLimit, "the release enforces as before", enforces)
		harness.Eventually(t, readyLimit, "the floor is gone", floorIsGone)
	}()
	harness.Eventually(t, readyLimit, "the default refuses a stranger", answers(stranger, "PG001"))
	harness.Eventually(t, readyLimit, "and admits one that says that it is privileged", answers(selfStyled, ""))

	upgrade(t, "--set=preset=observe,scanInterval=1m")
	harness.Eventually(t, readyLimit, "observe admits a stranger", answers(stranger, ""))
	observed := stranger()
	mustAdmit(t, observed)
	harness.Eventually(t, readyLimit, "it is reported", reported("default", func(r v1alpha1.ReportResult) bool {
		return r.Subject.Name == observed.GetName() && r.Rule == "PG001" && r.Effect == "audit"
	}))
	remove(t, observed)

	upgrade(t, "--set=preset=strict")
	for claim, o := range map[string]func() client.Object{"a stranger": stranger, "one that says that it is privileged": selfStyled} {
		harness.Eventually(t, readyLimit, "strict refuses "+claim, answers(o, "PG001"))
	}
	harness.Eventually(t, readyLimit, "the floor is there", func(ctx context.Context) error {
		for _, o := range floor.Empty("pipeguard-floor") {
			if err := shared.Client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
				return err
			}
		}
		return nil
	})
}

// answers asks that a dry run of an object is refused with a code by the webhook or the floor, or admitted if there is none.
func answers(of func() client.Object, code string) func(context.Context) error {
	return func(ctx context.Context) error {
		err := shared.Client.Create(ctx, of(), client.DryRunAll)
		switch {
		case code == "" && err == nil:
			return nil
		case code != "" && apierrors.IsForbidden(err) && strings.Contains(err.Error(), "Pipeguard") && strings.Contains(err.Error(), code):
			return nil
		}
		return fmt.Errorf("the answer is not %q: %w", code, errors.Join(err, errors.New("or it was admitted")))
	}
}

func floorIsGone(ctx context.Context) error {
	for _, o := range floor.Empty("pipeguard-floor") {
		if err := shared.Client.Get(ctx, client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%s: %w", o.GetName(), errors.Join(err, errors.New("still there")))
		}
	}
	return nil
}
