//go:build !windows

package winsvc

import (
	"context"
	"errors"
	"testing"
)

func TestAServiceIsRefusedWhereThereAreNone(t *testing.T) {
	err := Run(context.Background(), Options{Service: true}, func(context.Context) error {
		t.Error("it ran")
		return nil
	})
	if !errors.Is(err, errNoServiceManager) {
		t.Errorf("got %v", err)
	}
}
