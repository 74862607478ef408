// Package bundletest makes the keys that tests sign bundles with.
package bundletest

import (
	"testing"

	"github.com/pipeguard/pipeguard/internal/bundle"
)

// NewKey makes a signing key.
func NewKey(t testing.TB) *bundle.Key {
	t.Helper()
	key, err := bundle.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// PrivatePEM is the text of a signing key's file.
func PrivatePEM(t testing.TB, key *bundle.Key) string {
	t.Helper()
	text, err := key.PrivatePEM()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
