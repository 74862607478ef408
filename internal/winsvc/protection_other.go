//go:build !windows

package winsvc

import "errors"

// Harden has nothing to ask for outside Windows.
func Harden() []Protection { return nil }

// ProcessPower has nothing to ask outside Windows.
func ProcessPower(uint32) (Power, error) {
	return Power{}, errors.New("there are no Windows privileges on this system")
}
