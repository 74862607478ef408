//go:build !windows

package winsvc

import "context"

func runService(context.Context, Options, Function) error { return ErrNoManager }
