package install

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pipeguard/pipeguard/internal/winsvc"
)

// replaced is a service that was stopped and disabled in favour of ours, as it was before.
type replaced struct {
	Name      string `json:"name"`
	StartType string `json:"startType"`
	Running   bool   `json:"running"`
}

// mayTakeOver refuses to make a service of our name of what is none of ours, unless it was asked for by name.
func (i *Installer) mayTakeOver(before winsvc.Status) error {
	if !before.Installed {
		return nil
	}
	program := programOf(before.Command)
	if err := refuseSystem(i.want.Name, program); err != nil {
		return err
	}
	_, base := splitExe(program)
	if strings.EqualFold(base, exeName) {
		return nil
	}
	if strings.EqualFold(base, theirExeName) || i.isNamed(i.want.Name) {
		return i.refuseNeeded(i.want.Name)
	}
	return fmt.Errorf("service %s runs %s, which is neither CSI Proxy nor this program; nothing was changed: if it is to be replaced, say --replace %s", i.want.Name, program, i.want.Name)
}

func (i *Installer) isNamed(service string) bool {
	return slices.ContainsFunc(i.want.Replace, func(name string) bool { return strings.EqualFold(name, service) })
}

// toReplace returns the services that run, or would start again, beside ours.
func (i *Installer) toReplace() ([]replaced, error) {
	var found []replaced
	for _, name := range i.want.Replace {
		if strings.EqualFold(name, i.want.Name) { // our own, which is replaced anyway
			continue
		}
		now, err := i.parts.Manager.Status(name)
		if err != nil {
			return nil, err
		}
		isOff := now.StartType == winsvc.Disabled && now.State == winsvc.Stopped
		if !now.Installed || isOff {
			continue
		}
		if err := refuseSystem(name, programOf(now.Command)); err != nil {
			return nil, err
		}
		if err := i.refuseNeeded(name); err != nil {
			return nil, err
		}
		// A disabled one that still runs could not be started again.
		found = append(found, replaced{name, now.StartType, now.State != winsvc.Stopped && now.StartType != winsvc.Disabled})
	}
	return found, nil
}

// refuseNeeded refuses a service on which others depend: while they run it cannot be stopped, and once it is disabled they do not start,
// so that the node might not come back.
func (i *Installer) refuseNeeded(name string) error {
	dependents, err := i.parts.Manager.Dependents(name)
	if err != nil {
		return err
	}
	if len(dependents) > 0 {
		return fmt.Errorf("services depend on service %s, which can neither be stopped while they run nor disabled: %s; nothing was changed: have the platform not install it, or take it from their dependencies", name, strings.Join(dependents, ", "))
	}
	return nil
}

// displace stops services and keeps them from starting again. How they were is written down first.
func (i *Installer) displace(ctx context.Context, services []replaced) error {
	if len(services) == 0 {
		return nil
	}
	known, err := readReplaced(i.want.Data)
	if err != nil {
		return err
	}
	for _, s := range services {
		if slices.ContainsFunc(known, s.is) {
			i.returned.note(s.Name)
			i.parts.Say("service %s is back: another program set it up again, or started it", s.Name)
		}
		known = remember(known, s)
	}
	if err := writeReplaced(i.want.Data, known); err != nil {
		return err
	}
	for _, s := range services {
		i.parts.Say("stopping service %s, which this one replaces, and disabling it", s.Name)
		if err := i.parts.Manager.SetStart(s.Name, winsvc.Disabled); err != nil {
			return err
		}
		if err := i.stopOther(ctx, s.Name); err != nil {
			return err
		}
	}
	return nil
}

func (i *Installer) stopOther(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	return i.parts.Manager.Stop(ctx, name)
}

// giveBack undoes displace after an installation that failed.
func (i *Installer) giveBack(ctx context.Context, services []replaced) error {
	return putBack(ctx, i.want.Data, services, i.parts.Manager, i.parts.Say)
}

// putBack has the services that were replaced run again.
func (r Removal) putBack(ctx context.Context) error {
	services, err := readReplaced(r.Data)
	if err != nil {
		return err
	}
	return putBack(ctx, r.Data, services, r.Manager, r.Say)
}

// putBack enables and starts services as they were, and forgets them. One that somebody has removed or enabled since is left as it is.
func putBack(ctx context.Context, data string, services []replaced, manager winsvc.Manager, say func(format string, args ...any)) error {
	if len(services) == 0 {
		return nil
	}
	known, err := readReplaced(data)
	if err != nil {
		return err
	}
	var errs []error
	for _, s := range services {
		if err := s.enable(ctx, manager); err != nil {
			errs = append(errs, fmt.Errorf("put service %s back: %w", s.Name, err))
			continue
		}
		known = slices.DeleteFunc(known, s.is)
		say("service %s is as it was before it was replaced", s.Name)
	}
	return errors.Join(append(errs, writeReplaced(data, known))...)
}

func (r replaced) enable(ctx context.Context, manager winsvc.Manager) error {
	now, err := manager.Status(r.Name)
	if err != nil || !now.Installed {
		return err
	}
	if now.StartType == winsvc.Disabled {
		if err := manager.SetStart(r.Name, r.StartType); err != nil {
			return err
		}
	}
	if !r.Running {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return manager.Start(ctx, r.Name)
}

func (r replaced) is(other replaced) bool { return strings.EqualFold(r.Name, other.Name) }

// remember adds a service. One that ran when it was first replaced is to run again.
func remember(known []replaced, s replaced) []replaced {
	at := slices.IndexFunc(known, s.is)
	if at < 0 {
		return append(known, s)
	}
	known[at].Running = known[at].Running || s.Running
	if s.StartType != winsvc.Disabled {
		known[at].StartType = s.StartType
	}
	return known
}

// maxReplaced bounds the file, in bytes.
const maxReplaced = 64 << 10

// readReplaced reads what was replaced. A file that is not there says that nothing was.
func readReplaced(data string) (known []replaced, err error) {
	file := filepath.Join(data, ReplacedName)
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && len(text) > maxReplaced {
		err = fmt.Errorf("%d bytes; %d are the bound", len(text), maxReplaced)
	}
	if err == nil {
		err = json.Unmarshal(text, &known)
	}
	if err != nil {
		return nil, fmt.Errorf("what was replaced, %s: %w", file, err)
	}
	return known, nil
}

func writeReplaced(data string, known []replaced) error {
	file := filepath.Join(data, ReplacedName)
	if len(known) == 0 {
		return ignoreMissing(os.Remove(file))
	}
	text, err := json.MarshalIndent(known, "", "  ")
	if err != nil {
		return err
	}
	return newContent{file, append(text, '\n')}.place()
}

// Replaced names the services that were stopped in favour of the one whose data lies in a directory.
func Replaced(data string) ([]string, error) {
	known, err := readReplaced(data)
	names := make([]string, len(known))
	for at, s := range known {
		names[at] = s.Name
	}
	return names, err
}

// returned counts services that came back after they were replaced.
type returned struct {
	times map[string]int
	last  time.Time
}

// recently is how long a service that came back is worth a report.
const recently = time.Hour

func (r *returned) note(name string) {
	if r.times == nil {
		r.times = map[string]int{}
	}
	r.times[strings.ToLower(name)]++
	r.last = time.Now()
}

// Contested is an error that names services which another program set up again within the last hour, or nil.
func (i *Installer) Contested() error {
	if len(i.returned.times) == 0 || time.Since(i.returned.last) > recently {
		return nil
	}
	var errs []error
	for name, times := range i.returned.times {
		errs = append(errs, fmt.Errorf("service %s came back %d times after it was replaced: another program keeps it", name, times))
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}
