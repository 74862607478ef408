package install

import (
	"context"
	"os"
	"time"
)

// Look is how often an installation that is followed is compared with what is wanted.
const Look = 10 * time.Second

// maxPause bounds the time between attempts that fail: each of them may stop the service for a moment.
const maxPause = 10 * time.Minute

// Follow applies what is wanted again and again until ctx is done, and tells report of each attempt. After one that
// failed it waits, longer each time, unless the new configuration has changed.
func (i *Installer) Follow(ctx context.Context, report func(changed bool, err error)) {
	pause := Look
	for ctx.Err() == nil {
		config := i.source()
		changed, err := i.Apply(ctx)
		if ctx.Err() != nil {
			return
		}
		report(changed, err)
		if err == nil {
			pause = Look
		}
		i.wait(ctx, pause, config)
		if err != nil {
			pause = min(2*pause, maxPause)
		}
	}
}

// wait returns after the pause, or when the new configuration has changed.
func (i *Installer) wait(ctx context.Context, pause time.Duration, config string) {
	until := time.NewTimer(pause)
	defer until.Stop()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-until.C:
			return
		case <-ticker.C:
			if i.source() != config {
				return
			}
		}
	}
}

// source is the content of the new configuration, or why there is none.
func (i *Installer) source() string {
	if i.want.ConfigFrom == "" {
		return ""
	}
	text, err := os.ReadFile(i.want.ConfigFrom)
	if err != nil {
		return "\x00" + err.Error()
	}
	return string(text)
}
