package winhost

import (
	"cmp"
	"errors"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/core/safepath"
	"github.com/pipeguard/pipeguard/internal/proxy/handler"
)

// Options of a Host.
type Options struct {
	Roots          *safepath.Roots // the working directories; they need not exist yet
	WMI            WMI             // the host's management service; the caller closes it, after the last call
	RequirePrivacy bool            // connections to shares must be encrypted
	Log            *zap.Logger     // what the host does not answer, and what is done in spite of it
	OwnService     string          // the service that is never stopped, because it is this process; empty is DefaultService
}

// DefaultService is the name under which CSI Proxy is installed, and this program in its place.
const DefaultService = "csiproxy"

// Host is a Windows host in all its parts.
type Host struct {
	parts  handler.Hosts
	shares shares
}

// Hosts returns the parts, as handlers take them.
func (h *Host) Hosts() handler.Hosts { return h.parts }

// system are the functions of Windows that the parts are built on, beside WMI.
type system struct {
	open     func(path string) (dir, error)
	devices  devices
	mounts   mounts
	network  network
	services serviceManager
	memory   memory
}

func newHost(o Options, s system) (*Host, error) {
	var faults []error
	if o.Roots == nil {
		faults = append(faults, errors.New("no working directories were given"))
	}
	if o.WMI == nil {
		faults = append(faults, errors.New("no management service was given"))
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	o.Log = cmp.Or(o.Log, zap.NewNop())
	o.OwnService = cmp.Or(o.OwnService, DefaultService)
	ask, below := asked{WMI: o.WMI}, places{o.Roots, s.open}
	mapped := shares{ask, below, s.network, o.RequirePrivacy, newCredentials(s.memory, o.Log), o.Log}
	return &Host{shares: mapped, parts: handler.Hosts{
		Disk:       disks{ask, s.devices, o.Log},
		Filesystem: &Filesystem{below, mapped.reach, s.mounts},
		Volume:     volumes{ask, below, s.mounts, o.Log},
		SMB:        mapped,
		ISCSI:      targets{ask},
		System:     services{ask, s.services, o.OwnService},
	}}, nil
}
