package admission

import (
	"slices"

	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/core/pipepath"
)

// host is what a subject permits of the host, ready to be compared.
type host struct {
	process     bool     // HostProcess containers
	runAs       []string // under these accounts, in upper case
	directories []pipepath.Directory
}

// hosts are those of the subjects that permit any of it.
type hosts map[*access.Subject]host

// add leaves out paths that ParseDirectory does not take: they hold nothing.
func (h hosts) add(list []access.Subject) {
	for i := range list {
		s := &list[i]
		if !s.ReachesHost() {
			continue
		}
		one := host{process: s.HostProcess != nil}
		if one.process {
			for _, name := range s.HostProcess.RunAsUserNames {
				one.runAs = append(one.runAs, access.UpperCase(name))
			}
		}
		for _, path := range s.HostPaths {
			if d, err := pipepath.ParseDirectory(path); err == nil {
				one.directories = append(one.directories, d)
			}
		}
		h[s] = one
	}
}

// differs is the first field in which a HostProcess container is not what the subject permits.
func (h host) differs(c *caller.Container) access.Field {
	switch {
	case !h.process || !c.HostProcess:
		return access.FieldHostProcess
	case len(h.runAs) > 0 && (c.RunAsUserName == "" || !slices.Contains(h.runAs, access.UpperCase(c.RunAsUserName))):
		return access.FieldRunAsUserName
	}
	return ""
}

// holds reports whether a directory is one of the host paths or in one; nil is a directory of which nothing is known.
func (h host) holds(d *pipepath.Directory) bool {
	return d != nil && slices.ContainsFunc(h.directories, func(own pipepath.Directory) bool { return own.Holds(*d) })
}

// ofHostProcess asks whether a container may be a HostProcess container, under the account that it declares.
func (h hosts) ofHostProcess(s *access.Subject, c *caller.Container, field access.Field) access.Field {
	if field != "" {
		return field
	}
	return h[s].differs(c)
}

// ofHostPath asks whether a container may mount a directory of the host; nil is one that is not known. A HostProcess container that the subject permits
// needs no mount to reach a directory, so that it may mount any.
func (h hosts) ofHostPath(d *pipepath.Directory) access.Question {
	return func(s *access.Subject, c *caller.Container, field access.Field) access.Field {
		if own := h[s]; field == "" && !own.holds(d) && own.differs(c) != "" {
			return access.FieldHostPath
		}
		return field
	}
}

// ofAccountHostPath asks the same of a volume that no container mounts, without regard to containers and images.
func (h hosts) ofAccountHostPath(d *pipepath.Directory) access.Question {
	return func(s *access.Subject, c *caller.Container, field access.Field) access.Field {
		if field = access.OfAccount(s, c, field); field == "" && !h[s].holds(d) {
			return access.FieldHostPath
		}
		return field
	}
}
