package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pipeguard/pipeguard/internal/patience"
	"github.com/pipeguard/pipeguard/internal/periodic"
)

// modulesInterval is how often a directory of Rego is looked at.
const modulesInterval = 10 * time.Second

// followModules calls changed whenever the Rego beside the configuration has changed, until ctx is done. dir is called each
// time, since a reload may name another directory. late is called once each time that reading the directory does not end in time.
func followModules(ctx context.Context, interval time.Duration, dir func() string, changed func(), late func(error)) {
	digest := patience.New(patience.Usual, func() ([sha256.Size]byte, error) { return modulesDigest(dir()), nil })
	last, err := digest.Read(ctx)
	for isLate := false; ; {
		if err != nil && ctx.Err() == nil && !isLate {
			late(err)
		}
		isLate = err != nil
		if !periodic.Sleep(ctx, interval) {
			return
		}
		var now [sha256.Size]byte
		if now, _, err = patience.Settled(ctx, patience.Quiet, last, func() (d, key [sha256.Size]byte, err error) {
			d, err = digest.Read(ctx)
			return d, d, err
		}); err == nil && now != last {
			last = now
			changed()
		}
	}
}

// modulesDigest stands for the Rego of a directory, or for the reason why it cannot be read.
func modulesDigest(dir string) [sha256.Size]byte {
	h := sha256.New()
	files, err := addedModules(dir)
	if err != nil {
		return sha256.Sum256([]byte(err.Error()))
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		_, _ = fmt.Fprintf(h, "%d %s %d %s", len(name), name, len(files[name]), files[name]) // a hash takes everything
	}
	return [sha256.Size]byte(h.Sum(nil))
}
