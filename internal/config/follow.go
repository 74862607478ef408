package config

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/pipeguard/pipeguard/internal/configfile"
	"github.com/pipeguard/pipeguard/internal/patience"
)

// Digest stands for the content of a file, or for the reason why it cannot be read. The zero value is a file that is not there.
type Digest [sha256.Size]byte

func digest(text []byte) Digest { return sha256.Sum256(text) }

// DigestOf reads a file.
func DigestOf(file string) Digest {
	text, err := configfile.Read(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Digest{}
	case err != nil:
		return digest([]byte("\x00" + err.Error()))
	}
	return digest(text)
}

// FollowOptions say how a file is watched. Zero values stand for the defaults.
type FollowOptions struct {
	// Look is how often the file's size, time and identity are looked at; 1s. There is no watch by the system: the audit
	// log often lies in the same directory, and each of its records would be an event.
	Look time.Duration
	// Reread is how often the content is compared, whatever it looks like; 10s. A file can change within the resolution of its time.
	Reread time.Duration
	// Settle is how long a content must stay the same before it counts, so that a file that is being written is not read; patience.Quiet.
	Settle time.Duration
	// Patience is how long the file may keep its reader; patience.Usual.
	Patience time.Duration
	// Late is called once each time that the file keeps its reader longer; what was loaded before stays loaded. Nil reports nothing.
	Late func(error)
	// Asked has a value when the file is to be read, changed or not.
	Asked <-chan struct{}
}

func (o FollowOptions) complete() FollowOptions {
	o.Look, o.Reread = cmp.Or(o.Look, time.Second), cmp.Or(o.Reread, 10*time.Second)
	o.Settle, o.Patience = cmp.Or(o.Settle, patience.Quiet), cmp.Or(o.Patience, patience.Usual)
	if o.Late == nil {
		o.Late = func(error) {}
	}
	return o
}

// Follow calls reload whenever the content of a file has become another one than that of loaded, and whenever it is
// asked to, until ctx is done. Links are followed anew each time, so that a Kubernetes volume that swaps its
// directory counts as a change. reload says whether it should be called again, after Reread at the latest, although the content
// stays as it is: a file can be refused for what is around it. isAgain tells such a call.
func Follow(ctx context.Context, file string, loaded Digest, o FollowOptions, reload func(isAgain bool) (again bool)) {
	o = o.complete()
	f := follower{
		FollowOptions: o,
		content:       patience.New(o.Patience, func() (Digest, error) { return DigestOf(file), nil }),
		outside:       patience.New(o.Patience, func() (appearance, error) { return look(file), nil }),
	}
	f.follow(ctx, loaded, reload)
}

// follower reads a file that may keep its reader.
type follower struct {
	FollowOptions
	content *patience.Reader[Digest]
	outside *patience.Reader[appearance]
}

func (f *follower) follow(ctx context.Context, loaded Digest, reload func(isAgain bool) (again bool)) {
	again, asked := false, false
	seen, err := f.outside.Read(ctx)
	reread := time.Now().Add(f.Reread)
	ticker := time.NewTicker(f.Look)
	defer ticker.Stop()
	for isLate := false; ; {
		if ctx.Err() != nil {
			return
		}
		if err != nil && !isLate {
			f.Late(err)
		}
		isLate = err != nil
		select {
		case <-ctx.Done():
			return
		case <-f.Asked:
			asked = true
		case <-ticker.C:
		}
		var now appearance
		if now, err = f.outside.Read(ctx); err != nil || !asked && !isLate && now.is(seen) && time.Now().Before(reread) {
			continue
		}
		var content Digest
		if content, _, err = patience.Settled(ctx, f.Settle, loaded, func() (Digest, Digest, error) {
			d, err := f.content.Read(ctx)
			return d, d, err
		}); err != nil {
			continue
		}
		seen, reread = now, time.Now().Add(f.Reread)
		if isNew := asked || content != loaded; isNew || again {
			loaded, asked = content, false
			again = reload(!isNew)
		}
	}
}

// appearance is what a file looks like from outside; nil is one that cannot be looked at.
type appearance struct{ fs.FileInfo }

func look(file string) appearance {
	info, err := os.Stat(file)
	if err != nil {
		return appearance{}
	}
	return appearance{info}
}

func (a appearance) is(b appearance) bool {
	if a.FileInfo == nil || b.FileInfo == nil {
		return a.FileInfo == nil && b.FileInfo == nil
	}
	return a.Size() == b.Size() && a.Mode() == b.Mode() && a.ModTime().Equal(b.ModTime()) && os.SameFile(a.FileInfo, b.FileInfo)
}
