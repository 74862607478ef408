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

// plan is what differs from what is wanted.
type plan struct {
	before  winsvc.Status
	exe     bool   // the program
	config  []byte // the new configuration; nil if it is in place
	service bool   // the service is not set up as it should be
	start   bool   // the service does not run
}

// Apply brings the installation about and reports whether there was anything to do. If the new service does not run, what was
// there before is put back and the error says how that went. A configuration that is refused stops everything before
// anything is changed.
func (i *Installer) Apply(ctx context.Context) (changed bool, err error) {
	p, err := i.plan()
	if err != nil {
		return false, err
	}
	if err := errors.Join(i.parts.MakePrograms(i.want.Programs), i.parts.MakePrivate(i.want.Data)); err != nil {
		return false, err
	}
	if p.exe || p.service {
		return true, i.replace(ctx, p)
	}
	if p.config != nil {
		if err := i.reconfigure(p); err != nil {
			return true, err
		}
	}
	if p.start {
		i.parts.Say("starting service %s, which is %s", i.want.Name, p.before.State)
		return true, i.start(ctx)
	}
	return p.config != nil, nil
}

// plan changes nothing.
func (i *Installer) plan() (plan, error) {
	var p plan
	var err error
	if p.config, err = i.newConfig(); err != nil {
		return p, err
	}
	same, err := isSame(i.want.Source, i.exe())
	if err != nil {
		return p, fmt.Errorf("compare programs: %w", err)
	}
	p.exe = !same
	if p.before, err = i.parts.Manager.Status(i.want.Name); err != nil {
		return p, err
	}
	b := p.before
	p.start = b.State != winsvc.Running
	p.service = b.Command != i.spec().Command || b.StartType != "automatic" || b.Account != "LocalSystem"
	return p, nil
}

// newConfig returns the configuration to put in place, or nil. What the service would read is checked in any case: it
// would not start with a fault in it.
func (i *Installer) newConfig() ([]byte, error) {
	installed, err := os.ReadFile(i.want.Config)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the installed configuration: %w", err)
	}
	if i.want.ConfigFrom == "" {
		if installed == nil {
			return nil, nil
		}
		if err := i.parts.CheckOwners(i.want.Config); err != nil {
			return nil, fmt.Errorf("the installed configuration is refused; nothing was changed: %w", err)
		}
		if err := i.parts.CheckConfig(i.want.Config, installed); err != nil {
			return nil, fmt.Errorf("the installed configuration is refused; nothing was changed:\n%w", err)
		}
		return nil, nil
	}
	text, err := os.ReadFile(i.want.ConfigFrom)
	if err != nil {
		return nil, fmt.Errorf("read the new configuration; nothing was changed: %w", err)
	}
	if err := i.parts.CheckConfig(i.want.ConfigFrom, text); err != nil {
		return nil, fmt.Errorf("the new configuration is refused; nothing was changed:\n%w", err)
	}
	// What belongs to somebody else is replaced, even by the same: he could change it later.
	if installed != nil && bytes.Equal(text, installed) && i.parts.CheckOwners(i.want.Config) == nil {
		return nil, nil
	}
	return text, nil
}

// reconfigure changes the configuration alone. The service reads it by itself, and at once if it can be asked.
func (i *Installer) reconfigure(p plan) error {
	r, err := prepare(i.want.Config, bytes.NewReader(p.config), 0o600)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	if err := r.over(); err != nil {
		return errors.Join(fmt.Errorf("configuration: %w", err), r.undo())
	}
	i.parts.Say("configuration %s replaced", i.want.Config)
	if p.start {
		return nil
	}
	if err := i.parts.Manager.Reload(i.want.Name); err != nil {
		i.parts.Say("note: %v; it notices the change by itself", err)
	}
	return nil
}
