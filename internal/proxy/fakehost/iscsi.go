package fakehost

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"strconv"

	"github.com/pipeguard/pipeguard/internal/proxy/handler"
)

// portal is a portal of the network.
type portal struct {
	Portal
	targets []*target
	added   bool // to those of the node
}

// target is a target with its disks, which the node sees while it is connected.
type target struct {
	Target
	disks     []*disk
	connected bool
}

func newPortal(p Portal) *portal {
	made := &portal{Portal: p}
	for _, t := range p.Targets {
		with := &target{Target: t}
		for _, d := range t.Disks {
			with.disks = append(with.disks, newDisk(d))
		}
		made.targets = append(made.targets, with)
	}
	return made
}

func portalName(p handler.TargetPortal) string {
	return net.JoinHostPort(p.Address, number(uint32(p.Port)))
}

// reach finds a portal on the network.
func (h *Host) reach(p handler.TargetPortal) (*portal, error) {
	for _, known := range h.network {
		if fold(known.Address) == fold(p.Address) && known.Port == p.Port {
			return known, nil
		}
	}
	return nil, fmt.Errorf("target portal %s: %w", portalName(p), fs.ErrNotExist)
}

// portal finds a portal of the node.
func (h *Host) portal(p handler.TargetPortal) (*portal, error) {
	known, err := h.reach(p)
	if err == nil && !known.added {
		return nil, fmt.Errorf("target portal %s: it was not added: %w", portalName(p), fs.ErrNotExist)
	}
	return known, err
}

func (h *Host) target(p handler.TargetPortal, name handler.IQN) (*target, error) {
	known, err := h.portal(p)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(known.targets, func(t *target) bool { return fold(string(t.IQN)) == fold(string(name)) })
	if at < 0 {
		return nil, fmt.Errorf("target %s of portal %s: %w", name, portalName(p), fs.ErrNotExist)
	}
	return known.targets[at], nil
}

// AddTargetPortal implements [handler.ISCSI].
func (h *Host) AddTargetPortal(ctx context.Context, p handler.TargetPortal) error {
	return h.change(ctx, "AddTargetPortal", []string{portalName(p)}, func() (bool, error) {
		known, err := h.reach(p)
		if err != nil || known.added {
			return false, err
		}
		known.added = true
		return true, nil
	})
}

// DiscoverTargetPortal implements [handler.ISCSI].
func (h *Host) DiscoverTargetPortal(ctx context.Context, p handler.TargetPortal) ([]handler.IQN, error) {
	return ask(ctx, h, "DiscoverTargetPortal", []string{portalName(p)}, func() ([]handler.IQN, error) {
		known, err := h.portal(p)
		if err != nil {
			return nil, err
		}
		var names []handler.IQN
		for _, t := range known.targets {
			names = append(names, t.IQN)
		}
		return names, nil
	})
}

// ListTargetPortals implements [handler.ISCSI].
func (h *Host) ListTargetPortals(ctx context.Context) ([]handler.TargetPortal, error) {
	return ask(ctx, h, "ListTargetPortals", nil, func() ([]handler.TargetPortal, error) {
		var list []handler.TargetPortal
		for _, p := range h.network {
			if p.added {
				list = append(list, p.TargetPortal)
			}
		}
		return list, nil
	})
}

// RemoveTargetPortal implements [handler.ISCSI]. Targets that are connected stay so, and are found again when the portal is.
func (h *Host) RemoveTargetPortal(ctx context.Context, p handler.TargetPortal) error {
	return h.change(ctx, "RemoveTargetPortal", []string{portalName(p)}, func() (bool, error) {
		known, err := h.portal(p)
		if err != nil {
			return false, err
		}
		known.added = false
		return true, nil
	})
}

// ConnectTarget implements [handler.ISCSI]. The ledger has no secret.
func (h *Host) ConnectTarget(ctx context.Context, p handler.TargetPortal, name handler.IQN, login handler.Login) error {
	args := []string{portalName(p), string(name), strconv.Itoa(int(login.Auth)), login.Username, login.Secret.String()}
	return h.change(ctx, "ConnectTarget", args, func() (bool, error) {
		t, err := h.target(p, name)
		switch {
		case err != nil:
			return false, err
		case t.connected:
			return false, nil
		case !t.admits(login, h.mutual):
			return false, fmt.Errorf("log in to target %s: %w", name, fs.ErrPermission)
		}
		t.connected = true
		for _, d := range t.disks {
			h.attach(d)
		}
		return true, nil
	})
}

// admits says whether the two can log in to each other.
func (t *target) admits(l handler.Login, mutual string) bool {
	return t.Auth == l.Auth && (t.Auth == handler.AuthNone || t.Username == l.Username && t.Secret == l.Secret.Reveal()) &&
		(t.Auth != handler.AuthMutualCHAP || t.MutualSecret == mutual)
}

// DisconnectTarget implements [handler.ISCSI].
func (h *Host) DisconnectTarget(ctx context.Context, p handler.TargetPortal, name handler.IQN) error {
	return h.change(ctx, "DisconnectTarget", []string{portalName(p), string(name)}, func() (bool, error) {
		t, err := h.target(p, name)
		if err != nil || !t.connected {
			return false, err
		}
		t.connected = false
		for _, d := range t.disks {
			delete(h.disks, d.Number)
		}
		return true, nil
	})
}

// TargetDisks implements [handler.ISCSI].
func (h *Host) TargetDisks(ctx context.Context, p handler.TargetPortal, name handler.IQN) ([]uint32, error) {
	return ask(ctx, h, "TargetDisks", []string{portalName(p), string(name)}, func() ([]uint32, error) {
		t, err := h.target(p, name)
		if err != nil || !t.connected {
			return nil, err
		}
		var numbers []uint32
		for _, d := range t.disks {
			numbers = append(numbers, d.Number)
		}
		return numbers, nil
	})
}

// SetMutualCHAPSecret implements [handler.ISCSI].
func (h *Host) SetMutualCHAPSecret(ctx context.Context, secret handler.Secret) error {
	return h.change(ctx, "SetMutualCHAPSecret", []string{secret.String()}, func() (bool, error) {
		changed := h.mutual != secret.Reveal()
		h.mutual = secret.Reveal()
		return changed, nil
	})
}
