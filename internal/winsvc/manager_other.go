//go:build !windows

package winsvc

// Connect opens the service manager of this machine.
func Connect() (Manager, error) { return nil, ErrNoManager }
