package winhost

import (
	"context"
	"fmt"
	"io/fs"
	"slices"

	"github.com/pipeguard/pipeguard/internal/proxy/handler"
	"github.com/pipeguard/pipeguard/internal/proxy/wmi"
)

var authTypes = map[handler.AuthType]string{
	handler.AuthNone: "NONE", handler.AuthOneWayCHAP: "ONEWAYCHAP", handler.AuthMutualCHAP: "MUTUALCHAP",
}

// ConnectTarget implements [handler.ISCSI].
func (t targets) ConnectTarget(ctx context.Context, p handler.TargetPortal, iqn handler.IQN, login handler.Login) error {
	auth, known := authTypes[login.Auth]
	if !known {
		return fmt.Errorf("invalid authentication type authType=%d: %w", login.Auth, fs.ErrInvalid)
	}
	t.isQuiet = !login.Secret.IsEmpty()
	_, isConnected, err := t.target(ctx, p, iqn)
	if err != nil || isConnected {
		return err
	}
	in := map[string]any{
		"NodeAddress": string(iqn), "TargetPortalAddress": p.Address, "TargetPortalPortNumber": p.Port, "AuthenticationType": auth,
	}
	// An empty name or secret is left out, unless CHAP needs it: then the initiator shall say that it is missing.
	if login.Auth != handler.AuthNone || login.Username != "" {
		in["ChapUsername"] = login.Username
	}
	if login.Auth != handler.AuthNone || !login.Secret.IsEmpty() {
		in["ChapSecret"] = wmi.Secret(login.Secret.Reveal())
	}
	return t.invoke(ctx, targetName(iqn), iscsiCodes, wmi.Call{
		Namespace: wmi.Storage, Class: targetClass, Method: "Connect", In: in,
	}, targetLoggedIn)
}

// DisconnectTarget implements [handler.ISCSI].
func (t targets) DisconnectTarget(ctx context.Context, p handler.TargetPortal, iqn handler.IQN) error {
	target, isConnected, err := t.target(ctx, p, iqn)
	if err != nil || !isConnected {
		return err
	}
	what := "a session with " + targetName(iqn)
	sessions, err := t.related(ctx, targetName(iqn), target, "MSFT_iSCSITargetToiSCSISession", sessionClass)
	if err != nil {
		return err
	}
	if len(sessions) == 0 {
		return t.gone(ctx, p, iqn)
	}
	for _, session := range sessions {
		id, err := session.Text("SessionIdentifier")
		if err != nil {
			return unknown(what, err)
		}
		isPersistent, err := session.Bool("IsPersistent")
		if err != nil {
			return unknown(what, err)
		}
		if isPersistent {
			// First, or the host would log in again when it starts.
			if err := t.invoke(ctx, what, iscsiCodes, wmi.Call{
				Namespace: wmi.Storage, Class: sessionClass, Path: session.Path, Method: "Unregister",
			}); err != nil {
				return err
			}
		}
		if err := t.invoke(ctx, what, iscsiCodes, wmi.Call{
			Namespace: wmi.Storage, Class: targetClass, Path: target.Path, Method: "Disconnect", In: map[string]any{"SessionIdentifier": id},
		}); err != nil {
			return err
		}
	}
	return nil
}

// gone asks again of a target that was connected and has no session: it may have been about to end.
func (t targets) gone(ctx context.Context, p handler.TargetPortal, iqn handler.IQN) error {
	_, isConnected, err := t.target(ctx, p, iqn)
	if err == nil && isConnected {
		err = fmt.Errorf("%s is connected without a session: %w", targetName(iqn), handler.ErrPrecondition)
	}
	return err
}

// TargetDisks implements [handler.ISCSI].
func (t targets) TargetDisks(ctx context.Context, p handler.TargetPortal, iqn handler.IQN) ([]uint32, error) {
	target, isConnected, err := t.target(ctx, p, iqn)
	if err != nil || !isConnected {
		return nil, err
	}
	what := targetName(iqn)
	connections, err := t.related(ctx, what, target, "MSFT_iSCSITargetToiSCSIConnection", "MSFT_iSCSIConnection")
	if err != nil {
		return nil, err
	}
	var numbers []uint32
	for _, connection := range connections {
		disks, err := t.related(ctx, "a connection of "+what, connection, "MSFT_iSCSIConnectionToDisk", "MSFT_Disk")
		if err != nil {
			return nil, err
		}
		for _, disk := range disks {
			number, err := numberOf(disk, "Number")
			if err != nil {
				return nil, unknown("a disk of "+what, err)
			}
			numbers = append(numbers, number)
		}
	}
	slices.Sort(numbers)
	return slices.Compact(numbers), nil // several connections lead to the same disks
}

// SetMutualCHAPSecret implements [handler.ISCSI].
func (t targets) SetMutualCHAPSecret(ctx context.Context, secret handler.Secret) error {
	t.isQuiet = true
	return t.invoke(ctx, "the initiator's CHAP secret", iscsiCodes, wmi.Call{
		Namespace: wmi.Storage, Class: sessionClass, Method: "SetCHAPSecret", In: map[string]any{"ChapSecret": wmi.Secret(secret.Reveal())},
	})
}
