//go:build !windows

package winsvc

import (
	"context"
	"errors"
	"testing"
)

func TestAServiceIsRefusedWhereThereAreNone(t *testing.T) {
	err := Run(context.Background(), Options{Service: true}, func(context.Context, func()) error {
		t.Error("it ran")
		return nil
	})
	if !errors.Is(err, ErrNoManager) {
		t.Errorf("got %v", err)
	}
	if _, err := Connect(); !errors.Is(err, ErrNoManager) {
		t.Errorf("connect: %v", err)
	}
}
