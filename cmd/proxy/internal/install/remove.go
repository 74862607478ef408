package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pipeguard/pipeguard/internal/winsvc"
)

// Removal is an installation that is to go.
type Removal struct {
	Name    string
	Data    string // the directory of configuration and records
	Purge   bool   // removes programs and configuration too, and never records
	Manager winsvc.Manager
	// RemoveEventSource removes the source of the event log.
	RemoveEventSource func() error
	Say               func(format string, args ...any)
}

// Apply removes the service, puts back those that were stopped in its favour, and with Purge removes its files. What is not there is no
// error.
func (r Removal) Apply(ctx context.Context) error {
	before, err := r.Manager.Status(r.Name)
	if err != nil {
		return err
	}
	if before.Installed {
		ctx, cancel := context.WithTimeout(ctx, stopTimeout)
		defer cancel()
		r.Say("stopping service %s", r.Name)
		if err := r.Manager.Stop(ctx, r.Name); err != nil {
			return err
		}
		if err := r.Manager.Delete(r.Name); err != nil {
			return err
		}
		r.Say("service %s removed", r.Name)
	} else {
		r.Say("service %s is not installed", r.Name)
	}
	if err := r.RemoveEventSource(); err != nil {
		r.Say("note: %v", err)
	}
	// A credential that nobody uses any more is not left lying about.
	err = errors.Join(removeAll(r.Say, filepath.Join(r.Data, KubeletTokenName)), r.putBack(ctx))
	if !r.Purge {
		return err
	}
	return errors.Join(err, r.purge(before.Command))
}

// purge removes files by name. A program of another name is not ours, and stays.
func (r Removal) purge(command string) error {
	var files []string
	if args := winsvc.SplitCommandLine(command); len(args) > 0 {
		if dir, base := splitExe(args[0]); strings.EqualFold(base, exeName) {
			for _, suffix := range []string{"", newSuffix, oldSuffix} {
				files = append(files, filepath.Join(dir, exeName)+suffix)
			}
			defer func() { _ = os.Remove(dir) }() // goes if nothing is left in it
		} else {
			r.Say("%s is not ours and stays", args[0])
		}
	}
	for _, name := range []string{ConfigName, KeysName, BundleName, KubeletTokenName, KubeletCAName} {
		for _, suffix := range []string{"", newSuffix, oldSuffix} {
			files = append(files, filepath.Join(r.Data, name)+suffix)
		}
	}
	err := removeAll(r.Say, files...)
	if left, err := os.ReadDir(r.Data); err == nil && len(left) > 0 {
		r.Say("%s stays: there are records in it", r.Data)
	} else {
		_ = os.Remove(r.Data)
	}
	return err
}

// removeAll removes files, those that are there.
func removeAll(say func(format string, args ...any), files ...string) error {
	var errs []error
	for _, file := range files {
		switch err := os.Remove(file); {
		case err == nil:
			say("%s removed", file)
		case ignoreMissing(err) != nil:
			errs = append(errs, fmt.Errorf("remove %s (a program cannot remove itself): %w", file, err))
		}
	}
	return errors.Join(errs...)
}

// splitExe splits a Windows path on every system.
func splitExe(path string) (dir, base string) {
	i := strings.LastIndexAny(path, `\/`)
	if i < 0 {
		return "", path
	}
	return path[:i], path[i+1:]
}
