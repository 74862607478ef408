package token

import (
	"context"
	"fmt"
	"time"

	"github.com/pipeguard/pipeguard/internal/filetrust"
	"github.com/pipeguard/pipeguard/internal/periodic"
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

// Reload reads the file with keys again, and says whether they have changed. On an error, and if the file is gone, the
// previous keys stay in force. It is for one goroutine at a time; Run calls it.
func (v *Verifier) Reload() (bool, error) {
	before := v.keys.Load()
	if before == nil {
		return false, nil
	}
	k, err := loadKeys(v.config.Keys)
	if err != nil {
		return false, fmt.Errorf("keys: %w", err)
	}
	if k.sum == before.sum {
		return false, nil
	}
	v.keys.Store(k)
	return true, nil
}

// reread is how often the file with keys is compared. A cluster publishes a key long before it signs with it.
const reread = 10 * time.Second

// Run reads the file with keys again when it has changed, until ctx is done. A file that stays unfit is reported once.
func (v *Verifier) Run(ctx context.Context) error {
	var last string
	periodic.Run(ctx, reread, func() {
		changed, err := v.Reload()
		switch {
		case err != nil && err.Error() != last:
			last = err.Error()
			v.metrics.reloaded(err)
		case err == nil && (changed || last != ""):
			last = ""
			v.metrics.reloaded(nil)
		}
	})
	return nil
}
