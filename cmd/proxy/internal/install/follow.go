package install

import (
	"context"
	"crypto/sha256"
	"os"
	"slices"
	"time"

	"github.com/pipeguard/pipeguard/internal/periodic"
)

// Look is how often a followed installation is compared with what is wanted.
const Look = 10 * time.Second

// maxPause bounds the time between attempts that fail: each of them may stop the service for a moment.
const maxPause = 10 * time.Minute

// Follow applies what is wanted again and again until ctx is done, and tells report of each attempt. After one that
// failed it waits, longer each time, unless something that is copied has changed.
func (i *Installer) Follow(ctx context.Context, report func(changed bool, err error)) {
	pause := Look
	for ctx.Err() == nil {
		sources := i.source()
		changed, err := i.Apply(ctx)
		if ctx.Err() != nil {
			return
		}
		report(changed, err)
		if err == nil {
			pause = Look
		}
		i.wait(ctx, pause, sources)
		if err != nil {
			pause = min(2*pause, maxPause)
		}
	}
}

// wait returns after the pause, or when something that is copied has changed.
func (i *Installer) wait(ctx context.Context, pause time.Duration, sources string) {
	ctx, cancel := context.WithTimeout(ctx, pause)
	defer cancel()
	for periodic.Sleep(ctx, time.Second) && i.source() == sources {
	}
}

// source stands for the content of everything that is copied, or for why there is none.
func (i *Installer) source() string {
	sums := sha256.New()
	add := func(text []byte, err error) {
		fault := ""
		if err != nil {
			fault = "\x00" + err.Error()
		}
		one := sha256.Sum256(append(text, fault...))
		_, _ = sums.Write(one[:]) // a hash takes everything
	}
	if i.want.ConfigFrom != "" {
		add(os.ReadFile(i.want.ConfigFrom))
	}
	for _, c := range slices.Concat(i.want.Needed, i.want.Delivered) {
		add(c.Read(c.From))
	}
	return string(sums.Sum(nil))
}
