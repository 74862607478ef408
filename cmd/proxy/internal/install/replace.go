package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/pipeguard/pipeguard/internal/winsvc"
)

// replace changes programs and starts the service, or puts everything back.
func (i *Installer) replace(ctx context.Context, p plan) error {
	switch added, err := i.parts.AddEventSource(); {
	case err != nil:
		i.parts.Say("note: %v", err) // events are written all the same
	case added:
		i.parts.Say("event source %s registered", winsvc.EventSource)
	}
	files, err := i.prepare(p)
	if err != nil {
		return err
	}
	if err := i.exchange(ctx, p, files); err != nil {
		// The caller may have left meanwhile; half of an installation must not stay.
		return errors.Join(err, i.restore(context.WithoutCancel(ctx), p, files))
	}
	i.parts.Say("service %s runs %s", i.want.Name, i.exe())
	if _, err := os.Stat(i.want.Config); errors.Is(err, fs.ErrNotExist) {
		i.parts.Say("%s is not there: EVERY CALL IS DENIED until it is", i.want.Config)
	}
	for _, f := range files {
		_ = os.Remove(f.path + oldSuffix) // the next installation removes what cannot be removed now
	}
	return nil
}

// prepare writes new files beside those that they replace, while the service still runs.
func (i *Installer) prepare(p plan) (files []*replacement, err error) {
	if p.exe {
		source, err := os.Open(i.want.Source)
		if err != nil {
			return nil, err
		}
		f, err := prepare(i.exe(), source, 0o755)
		if err = errors.Join(err, source.Close()); err != nil {
			return nil, fmt.Errorf("copy the program: %w", err)
		}
		files = append(files, f)
	}
	for _, c := range p.files {
		f, err := prepare(c.path, bytes.NewReader(c.text), 0o600)
		if err != nil {
			return nil, fmt.Errorf("copy %s: %w", c.path, err)
		}
		files = append(files, f)
	}
	return files, nil
}

func (i *Installer) exchange(ctx context.Context, p plan, files []*replacement) error {
	if p.before.Installed && p.before.State != winsvc.Stopped {
		i.parts.Say("stopping service %s, which runs %s", i.want.Name, p.before.Command)
		if err := i.stop(ctx); err != nil {
			return err
		}
	}
	if err := i.displace(ctx, p.replace); err != nil {
		return err
	}
	for _, f := range files {
		if err := f.swap(); err != nil {
			return fmt.Errorf("put %s in place: %w", f.path, err)
		}
		i.parts.Say("%s put in place", f.path)
	}
	change, err := i.parts.Manager.Put(i.spec())
	if err != nil {
		return err
	}
	for _, note := range change.Notes {
		i.parts.Say("note: %s", note)
	}
	if change.Changed {
		i.parts.Say("service %s set up: %s", i.want.Name, i.spec().Command)
	}
	i.parts.Say("starting service %s", i.want.Name)
	return i.start(ctx)
}

// restore undoes exchange. Its error is nil if that was possible.
func (i *Installer) restore(ctx context.Context, p plan, files []*replacement) error {
	i.parts.Say("putting back what was there before")
	var errs []error
	if err := i.stop(ctx); err != nil {
		errs = append(errs, err)
	}
	for _, f := range files {
		if err := f.undo(); err != nil {
			errs = append(errs, fmt.Errorf("put %s back: %w", f.path, err))
		}
	}
	errs = append(errs, i.giveBack(ctx, p.replace), i.restoreService(ctx, p.before))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("and it could not all be put back: %w", err)
	}
	return nil
}

func (i *Installer) restoreService(ctx context.Context, before winsvc.Status) error {
	if !before.Installed {
		return i.parts.Manager.Delete(i.want.Name)
	}
	_, err := i.parts.Manager.Put(specOf(i.want.Name, before.Command, before.Limits))
	if before.State == winsvc.Stopped {
		return err
	}
	// A setting that cannot be put back is no reason to leave the node without storage.
	if err = errors.Join(err, i.start(ctx)); err != nil {
		return err
	}
	i.parts.Say("service %s runs as before: %s", i.want.Name, before.Command)
	return nil
}

func (i *Installer) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	return i.parts.Manager.Stop(ctx, i.want.Name)
}

func (i *Installer) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return i.parts.Manager.Start(ctx, i.want.Name)
}
