package token

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/pipeguard/pipeguard/internal/filetrust"
)

func loadKeys(file string) (*keys, error) {
	text, err := filetrust.Read(file, maxAnswer)
	if err != nil {
		return nil, err
	}
	k, err := parseKeys(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return k, nil
}

// Reload reads the file with keys again. It says whether others hold now; on an error, and if the file is gone, the
// keys from before go on to hold. It is for one goroutine at a time; Run calls it.
func (v *Verifier) Reload() (bool, error) {
	before := v.keys.Load()
	if before == nil {
		return false, nil
	}
	text, err := filetrust.Read(v.config.Keys, maxAnswer)
	if err != nil {
		return false, fmt.Errorf("keys: %w", err)
	}
	if sha256.Sum256(text) == before.sum {
		return false, nil
	}
	k, err := parseKeys(text)
	if err != nil {
		return false, fmt.Errorf("keys: %s: %w", v.config.Keys, err)
	}
	v.keys.Store(k)
	return true, nil
}

// reread is how often the file with keys is compared. A cluster publishes a key long before it signs with it.
const reread = 10 * time.Second

// Run reads the file with keys again when it has changed, until ctx is done. A file that stays unfit is reported once.
func (v *Verifier) Run(ctx context.Context) error {
	ticker := time.NewTicker(reread)
	defer ticker.Stop()
	var last string
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		changed, err := v.Reload()
		switch {
		case err != nil && err.Error() != last:
			last = err.Error()
			v.metrics.reloaded(err)
		case err == nil && (changed || last != ""):
			last = ""
			v.metrics.reloaded(nil)
		}
	}
}
