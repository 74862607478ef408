//go:build !windows

package winsvc

import (
	"context"
	"errors"
)

var errNoServiceManager = errors.New("there is no Windows service manager on this system")

func runService(context.Context, string, func(context.Context) error) error {
	return errNoServiceManager
}
