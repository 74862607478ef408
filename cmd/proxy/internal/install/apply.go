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
	exe     bool         // the program
	files   []newContent // the configuration last, so that its readers find the others
	service bool         // the service is not set up as it should be, or must start again to be
	start   bool         // the service does not run
	replace []replaced   // other services that are to be stopped and disabled
}

// Apply brings the installation about and reports whether there was anything to do. If the new service does not run, what was
// there before is put back and the error says how that went. A configuration that is refused stops everything before
// anything is changed, but for data that is delivered to a service that is there.
func (i *Installer) Apply(ctx context.Context) (changed bool, err error) {
	p, err := i.plan()
	if err == nil {
		err = errors.Join(i.parts.MakePrograms(i.want.Programs), i.parts.MakePrivate(i.want.Data))
	} else if !p.before.Installed || i.parts.MakePrivate(i.want.Data) != nil {
		return false, err
	}
	delivered, undelivered := i.deliver()
	if err != nil {
		return delivered, errors.Join(err, undelivered)
	}
	changed, err = i.carryOut(ctx, p)
	return changed || delivered, errors.Join(err, undelivered)
}

func (i *Installer) carryOut(ctx context.Context, p plan) (changed bool, err error) {
	if p.exe || p.service || p.start && len(p.replace) > 0 {
		return true, i.replace(ctx, p)
	}
	if len(p.replace) > 0 { // they came back while the service runs
		if err := i.displace(ctx, p.replace); err != nil {
			return true, err
		}
	}
	if len(p.files) > 0 {
		if err := i.reconfigure(p); err != nil {
			return true, err
		}
	}
	if p.start {
		i.parts.Say("starting service %s, which is %s", i.want.Name, p.before.State)
		return true, i.start(ctx)
	}
	return len(p.files)+len(p.replace) > 0, nil
}

// plan changes nothing.
func (i *Installer) plan() (plan, error) {
	var p plan
	var err error
	if p.before, err = i.parts.Manager.Status(i.want.Name); err != nil {
		return p, err
	}
	if err := i.mayTakeOver(p.before); err != nil {
		return p, err
	}
	if p.replace, err = i.toReplace(); err != nil {
		return p, err
	}
	if p.files, err = i.needed(); err != nil {
		return p, err
	}
	config, restart, err := i.newConfig()
	if err != nil {
		return p, err
	}
	if config != nil {
		p.files = append(p.files, newContent{i.want.Config, config})
	}
	same, err := isSame(i.want.Source, i.exe())
	if err != nil {
		return p, fmt.Errorf("compare programs: %w", err)
	}
	p.exe = !same
	b := p.before
	p.start = b.State != winsvc.Running
	spec := i.spec()
	limited := b.Limits == nil || b.Limits.Equal(*spec.Limits) // a manager without limits would be asked for them again and again
	p.service = restart || b.Command != spec.Command || b.StartType != "automatic" || b.Account != "LocalSystem" || !limited
	return p, nil
}

// newConfig returns the configuration to put in place, or nil, and whether the service must be restarted for it: it must not
// wait for the node's next start. The configuration that the service would read is checked in any case: the service would not
// start with a fault in it.
func (i *Installer) newConfig() (config []byte, restart bool, err error) {
	installed, err := os.ReadFile(i.want.Config)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, false, fmt.Errorf("read the installed configuration: %w", err)
	}
	if i.want.ConfigFrom == "" {
		if installed == nil {
			return nil, false, nil
		}
		err := i.parts.CheckWriters(i.want.Config)
		if err == nil {
			err = i.parts.CheckConfig(i.want.Config, installed)
		}
		if err != nil {
			err = fmt.Errorf("the installed configuration is refused; nothing was changed: %w", err)
		}
		return nil, false, err
	}
	text, err := os.ReadFile(i.want.ConfigFrom)
	if err != nil {
		return nil, false, fmt.Errorf("read the new configuration; nothing was changed: %w", err)
	}
	if err := i.parts.CheckConfig(i.want.ConfigFrom, text); err != nil {
		return nil, false, fmt.Errorf("the new configuration is refused; nothing was changed: %w", err)
	}
	// A file that another account can change is replaced, even by the same content: that account could change it later.
	if installed != nil && bytes.Equal(text, installed) && i.parts.CheckWriters(i.want.Config) == nil {
		return nil, false, nil
	}
	return text, i.parts.NeedsRestart != nil && installed != nil && i.parts.NeedsRestart(installed, text), nil
}

// reconfigure changes the configuration and what goes with it alone. The service reads it by itself, and at once if it can be
// asked.
func (i *Installer) reconfigure(p plan) error {
	for _, f := range p.files {
		if err := f.place(); err != nil {
			return err
		}
		i.parts.Say("%s replaced", f.path)
	}
	if p.start {
		return nil
	}
	if err := i.parts.Manager.Reload(i.want.Name); err != nil {
		i.parts.Say("note: %v; it notices the change by itself", err)
	}
	return nil
}
