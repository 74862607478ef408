package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"time"
)

// modulesInterval is how often a directory of Rego is looked at.
const modulesInterval = 10 * time.Second

// modulesSettle is how long a directory must stay the same before it counts: half of its files refuse less than all of them.
const modulesSettle = time.Second

// followModules has the configuration read again whenever the Rego beside it has changed, until ctx is done. dir is asked each
// time, since a reload may name another.
func followModules(ctx context.Context, interval time.Duration, dir func() string, changed func()) {
	last := modulesDigest(dir())
	seen := last
	tick := time.NewTimer(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		next := interval
		switch now := modulesDigest(dir()); {
		case now == last:
			seen = last
		case now != seen: // perhaps it is being written
			seen, next = now, min(interval, modulesSettle)
		default:
			last = now
			changed()
		}
		tick.Reset(next)
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
