package kubelet

import (
	"context"
	"errors"

	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/proxy/peer"
)

// First asks one source after the other, and the next only if the one before does not know.
func First(sources ...peer.Accounts) peer.Accounts { return first(sources) }

type first []peer.Accounts

func (f first) ServiceAccount(ctx context.Context, pod caller.Pod) (string, error) {
	var errs []error
	for _, source := range f {
		account, err := source.ServiceAccount(ctx, pod)
		if err == nil && account != "" {
			return account, nil
		}
		errs = append(errs, err)
	}
	return "", errors.Join(errs...)
}
