package winhost

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/pipeguard/pipeguard/internal/proxy/handler"
	"github.com/pipeguard/pipeguard/internal/proxy/wmi"
)

// targets are the iSCSI targets that the host's initiator knows.
// https://learn.microsoft.com/previous-versions/windows/desktop/iscsidisc/iscsi-initiator-windows-management-infrastructure-classes
type targets struct{ asked }

var _ handler.ISCSI = targets{}

const (
	portalClass  = "MSFT_iSCSITargetPortal"
	targetClass  = "MSFT_iSCSITarget"
	sessionClass = "MSFT_iSCSISession"
)

func portalName(p handler.TargetPortal) string {
	return "portal " + net.JoinHostPort(p.Address, strconv.Itoa(int(p.Port)))
}

func (t targets) portals(ctx context.Context, what string, where ...wmi.Equal) ([]wmi.Instance, error) {
	return t.rows(ctx, what, wmi.Query{
		Namespace: wmi.Storage, Class: portalClass, Where: where,
	})
}

// find returns the portal, which may be there once for each of the host's own addresses.
func (t targets) find(ctx context.Context, p handler.TargetPortal) ([]wmi.Instance, error) {
	return t.portals(ctx, portalName(p),
		wmi.Equal{Property: "TargetPortalAddress", Value: p.Address}, wmi.Equal{Property: "TargetPortalPortNumber", Value: p.Port})
}

// known is find, for what needs a portal that was added.
func (t targets) known(ctx context.Context, p handler.TargetPortal) ([]wmi.Instance, error) {
	found, err := t.find(ctx, p)
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("%s: not found: %w", portalName(p), fs.ErrNotExist)
	}
	return found, err
}

// AddTargetPortal implements [handler.ISCSI].
func (t targets) AddTargetPortal(ctx context.Context, p handler.TargetPortal) error {
	found, err := t.find(ctx, p)
	if err != nil || len(found) > 0 {
		return err
	}
	return t.invoke(ctx, portalName(p), iscsiCodes, wmi.Call{
		Namespace: wmi.Storage, Class: portalClass, Method: "New",
		In: map[string]any{"TargetPortalAddress": p.Address, "TargetPortalPortNumber": p.Port},
	})
}

// RemoveTargetPortal implements [handler.ISCSI].
func (t targets) RemoveTargetPortal(ctx context.Context, p handler.TargetPortal) error {
	found, err := t.known(ctx, p)
	if err != nil {
		return err
	}
	for _, row := range found {
		if err := t.invoke(ctx, portalName(p), iscsiCodes, wmi.Call{
			Namespace: wmi.Storage, Class: portalClass, Path: row.Path, Method: "Remove",
			In: map[string]any{"TargetPortalAddress": p.Address, "TargetPortalPortNumber": p.Port},
		}); err != nil {
			return err
		}
	}
	return nil
}

// ListTargetPortals implements [handler.ISCSI].
func (t targets) ListTargetPortals(ctx context.Context) ([]handler.TargetPortal, error) {
	found, err := t.portals(ctx, "the target portals")
	if err != nil {
		return nil, err
	}
	var portals []handler.TargetPortal
	for _, row := range found {
		address, err := row.Text("TargetPortalAddress")
		if err != nil {
			return nil, unknown("the target portals", err)
		}
		port, err := row.Uint("TargetPortalPortNumber")
		if err != nil {
			return nil, unknown("the target portals", err)
		}
		if port > 65535 {
			return nil, fmt.Errorf("a target portal has port %d", port)
		}
		if p := (handler.TargetPortal{Address: address, Port: uint16(port)}); !slices.Contains(portals, p) {
			portals = append(portals, p)
		}
	}
	return portals, nil
}

// each calls with every target of a portal, and its name.
func (t targets) each(ctx context.Context, p handler.TargetPortal, act func(name handler.IQN, target wmi.Instance)) error {
	portals, err := t.known(ctx, p)
	if err != nil {
		return err
	}
	for _, portal := range portals {
		found, err := t.related(ctx, portalName(p), portal, "MSFT_iSCSITargetToiSCSITargetPortal", targetClass)
		if err != nil {
			return err
		}
		for _, target := range found {
			name, err := target.Text("NodeAddress")
			if err != nil {
				return unknown("a target of "+portalName(p), err)
			}
			act(handler.IQN(name), target)
		}
	}
	return nil
}

// DiscoverTargetPortal implements [handler.ISCSI].
func (t targets) DiscoverTargetPortal(ctx context.Context, p handler.TargetPortal) ([]handler.IQN, error) {
	var names []handler.IQN
	err := t.each(ctx, p, func(name handler.IQN, _ wmi.Instance) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	})
	if err != nil {
		return nil, err
	}
	return names, nil
}

// target finds a target of a portal, and says whether it is connected. Names are the same in any case (RFC 3722).
func (t targets) target(ctx context.Context, p handler.TargetPortal, iqn handler.IQN) (found wmi.Instance, isConnected bool, err error) {
	what, is := targetName(iqn), false
	err = t.each(ctx, p, func(name handler.IQN, target wmi.Instance) {
		if strings.EqualFold(string(name), string(iqn)) && !is {
			found, is = target, true
		}
	})
	if err != nil {
		return wmi.Instance{}, false, fmt.Errorf("%s: %w", what, err)
	}
	if !is {
		return wmi.Instance{}, false, fmt.Errorf("%s at %s: not found: %w", what, portalName(p), fs.ErrNotExist)
	}
	isConnected, err = found.Bool("IsConnected")
	return found, isConnected, unknown(what, err)
}

func targetName(iqn handler.IQN) string { return "target " + string(iqn) }
