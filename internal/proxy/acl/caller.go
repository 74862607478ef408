package acl

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/caller"
)

// parseCaller returns the pattern, and every fault.
func parseCaller(c CallerPattern) (access.Pattern, []error) {
	p := access.Pattern{Token: c.Token}
	if c.HostProcess != nil {
		value := *c.HostProcess // not to follow the spec
		p.HostProcess = &value
	}
	var errs []error
	if c.User != "" {
		user, err := access.ParseUser(c.User)
		p.User = user
		errs = append(errs, err)
	}
	if c.Exe != "" {
		exe, err := access.ParseExe(c.Exe)
		p.Exe = exe
		errs = append(errs, err)
	}
	errs = append(errs, parsePod(&p, c)...)
	p.Least = p.Needs()
	if c.User == "" && c.Exe == "" && p.Namespace == "" && errors.Join(errs...) == nil {
		return p, []error{errors.New("names neither a user, an exe nor a namespace: it would stand for every caller")}
	}
	return p, slices.DeleteFunc(append(errs, parseAssurance(&p, c.Assurance)), func(err error) bool { return err == nil })
}

// parsePod takes the fields that only a proven pod has.
func parsePod(p *access.Pattern, c CallerPattern) []error {
	var errs []error
	account := c.ServiceAccount
	p.Namespace = c.Namespace
	if namespace, name, ok := strings.Cut(c.ServiceAccount, "/"); ok {
		if c.Namespace != "" && c.Namespace != namespace {
			errs = append(errs, fmt.Errorf("service account %q is not of namespace %q", c.ServiceAccount, c.Namespace))
		}
		p.Namespace, account = namespace, name
		if namespace == "" || name == "" {
			errs = append(errs, fmt.Errorf("service account %q: want NAMESPACE/NAME", c.ServiceAccount))
		}
	} else if c.ServiceAccount != "" && c.Namespace == "" {
		errs = append(errs, fmt.Errorf("service account %q needs its namespace, beside it or as NAMESPACE/NAME", c.ServiceAccount))
	}
	if p.Namespace != "" && !caller.IsLabel(p.Namespace) {
		errs = append(errs, fmt.Errorf("namespace %q: want the name of one namespace", p.Namespace))
	}
	if account != "" {
		p.Accounts = []string{account}
		if !caller.IsSubdomain(account) {
			errs = append(errs, fmt.Errorf("service account %q: want the name of one service account", account))
		}
	}
	if c.Container != "" {
		p.Containers = []string{c.Container}
		if !caller.IsLabel(c.Container) {
			errs = append(errs, fmt.Errorf("container %q: want the name of one container", c.Container))
		}
	}
	if c.Image != "" {
		image, err := access.ParseImage(c.Image)
		p.Images = []string{image}
		errs = append(errs, err)
	}
	return errs
}

func parseAssurance(p *access.Pattern, text string) error {
	if text == "" {
		return nil
	}
	n := caller.Assurance(text).Level()
	switch {
	case n == caller.LevelNone:
		return fmt.Errorf("assurance %q: want sid, process or pod", text)
	case n < p.Least && p.Least == caller.LevelPod:
		return fmt.Errorf("assurance %q: pods and containers are known only at assurance pod", text)
	case n < p.Least:
		return fmt.Errorf("assurance %q: an exe is known only from assurance process upwards", text)
	}
	p.Least = n
	return nil
}
