package winhost

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/pipeguard/pipeguard/internal/proxy/handler"
	"github.com/pipeguard/pipeguard/internal/proxy/wmi"
)

// guard refuses to act on a disk or partition that the host itself runs from: one that it started from, or that
// Windows lies on. If the host does not say, it may be one. Only the call's permit opens it.
func guard(what string, of wmi.Instance, permits handler.Permits) error {
	if permits.SystemDisk {
		return nil
	}
	isSystem, systemErr := of.Bool("IsSystem")
	isBoot, bootErr := of.Bool("IsBoot")
	switch {
	case isSystem || isBoot:
		return fmt.Errorf("%s is one that the host runs from: %w", what, fs.ErrPermission)
	case systemErr != nil || bootErr != nil:
		return fmt.Errorf("the host does not say whether it runs from %s (%w): %w", what, errors.Join(systemErr, bootErr), fs.ErrPermission)
	}
	return nil
}
