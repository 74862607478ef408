package policy

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/fsnotify/fsnotify"
	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/periodic"
)

// Watch activates the policies of a directory, at once and whenever they change, until ctx is done. bind adds
// data, companion and checks to the files of each attempt; nil means none. onResult hears of each attempt whose content differs from the one before, with the
// new snapshot or the error; it may be nil. A directory that is missing, half-written or wrong, or that cannot be read to its end, leaves the policies before it
// deciding.
//
// Changes are seen by notification, and by a look every Options.WatchPoll: notifications get lost when the directory is
// itself replaced, when a subdirectory changes, and on some network file systems. Writers should rename complete files or links into
// place, as the kubelet does for a ConfigMap: a file that is cut off where it still is a policy cannot be told from a policy.
func (e *Engine) Watch(ctx context.Context, dir string, bind func(Modules) (Modules, error), onResult func(Snapshot, error)) error {
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch %s: %w", dir, err)
	}
	defer func() { _ = notify.Close() }() // nothing was written through it

	changed := make(chan struct{}, 1) // one waiting signal stands for any number
	forwarded := make(chan struct{})
	go func() {
		defer close(forwarded)
		e.forward(notify, dir, changed)
	}()
	defer func() { <-forwarded }()
	defer func() { _ = notify.Close() }() // ends forward before it is waited for

	var watched os.FileInfo
	load := func() (Modules, error) {
		watched = rewatch(notify, dir, watched)
		return loadDir(ctx, dir, bind)
	}
	w := e.newWatcher(e.options.WatchPoll, load, onResult)
	w.changed = changed
	w.run(ctx)
	return nil
}

// loadDir reads a directory and asks for what goes with its files.
func loadDir(ctx context.Context, dir string, bind func(Modules) (Modules, error)) (Modules, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return Modules{}, fmt.Errorf("read policy directory: %w", err)
	}
	if !info.IsDir() {
		return Modules{}, fmt.Errorf("read policy directory %s: not a directory", dir)
	}
	m, err := LoadFS(os.DirFS(dir))
	if err == nil {
		err = ctx.Err() // the caller has left
	}
	if err != nil || bind == nil {
		return m, err
	}
	if m, err = bind(m); err != nil {
		return Modules{}, fmt.Errorf("bind policies: %w", err)
	}
	return m, nil
}

// rewatch watches the directory that dir names now. A watch follows the directory and not its name, so that one that was
// replaced would be watched no longer. It comes before reading: what changes in between is then noticed.
func rewatch(notify *fsnotify.Watcher, dir string, before os.FileInfo) os.FileInfo {
	now, err := os.Stat(dir)
	if err != nil {
		return nil
	}
	if before != nil && os.SameFile(before, now) {
		return before
	}
	if err := notify.Remove(dir); err != nil && !errors.Is(err, fsnotify.ErrNonExistentWatch) {
		return nil
	}
	if err := notify.Add(dir); err != nil {
		return nil // the poll goes on, and tries again
	}
	return now
}

// forward turns notifications into signals until the watcher is closed.
func (e *Engine) forward(notify *fsnotify.Watcher, dir string, changed chan<- struct{}) {
	for {
		select {
		case event, ok := <-notify.Events:
			if !ok {
				return
			}
			if event.Op == fsnotify.Chmod {
				continue
			}
		case err, ok := <-notify.Errors:
			if !ok {
				return
			}
			e.options.Log.Warn("watching policies", zap.String(logkeys.Directory, dir), zap.Error(err))
		}
		periodic.Signal(changed)
	}
}
