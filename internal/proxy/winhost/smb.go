package winhost

import (
	"context"
	"fmt"
	"io/fs"
	"strings"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/proxy/handler"
	"github.com/pipeguard/pipeguard/internal/proxy/wmi"
)

// shares are the shares that all of the node may reach, as MSFT_SmbGlobalMapping shows them.
// https://learn.microsoft.com/powershell/module/smbshare/new-smbglobalmapping
type shares struct {
	asked
	places
	network        network
	requirePrivacy bool // connections must be encrypted
	known          *credentials
	log            *zap.Logger
}

var _ handler.SMB = shares{}

// network looks at shares.
type network interface {
	// Answers says whether a path on a share can be looked at, with the credentials that it was mapped with.
	Answers(path string) (bool, error)
}

const smbMapping = "MSFT_SmbGlobalMapping"

// mappings returns how a share is mapped: usually once or not at all, and once more for each drive letter that an
// administrator gave it.
func (s shares) mappings(ctx context.Context, share handler.Share) ([]wmi.Instance, error) {
	return s.rows(ctx, "the mapping of "+string(share), wmi.Query{
		Namespace: wmi.SMB, Class: smbMapping,
		Where: []wmi.Equal{{Property: "RemotePath", Value: string(share)}},
	})
}

// NewSMBGlobalMapping implements [handler.SMB]. The place of the link is checked before the share is mapped. settle decides about a
// mapping that is there.
//
// A mapping is undone for a link that cannot be made only if the share was not mapped before: others may use it.
func (s shares) NewSMBGlobalMapping(ctx context.Context, m handler.SMBMapping) error {
	share := m.Remote.Share()
	if share == "" {
		return fmt.Errorf("a remote path that was never checked: %w", fs.ErrInvalid)
	}
	s.isQuiet = !m.Password.IsEmpty()
	link, err := s.linkFor(ctx, m)
	if err != nil {
		return err
	}
	found, err := s.mappings(ctx, share)
	if err != nil {
		return err
	}
	keep, err := s.settle(ctx, share, m, found)
	if err == nil && !keep {
		err = s.create(ctx, share, m)
	}
	if err != nil {
		return err
	}
	if err = link(); err != nil && len(found) == 0 {
		err = s.undo(ctx, share, err)
	}
	return err
}

// create maps a share and remembers with what credentials.
func (s shares) create(ctx context.Context, share handler.Share, m handler.SMBMapping) error {
	if err := s.room(ctx, share); err != nil {
		return err
	}
	in := map[string]any{"RemotePath": string(share), "RequirePrivacy": s.requirePrivacy}
	if m.Username != "" {
		in["Credential"] = wmi.Secret(credential(m))
	}
	err := s.invoke(ctx, string(share), nil, wmi.Call{Namespace: wmi.SMB, Class: smbMapping, Method: "Create", In: in})
	if err == nil {
		s.known.remember(share, m)
	}
	return err
}

// room makes sure that what is remembered stays bounded: callers choose the names of shares. Mappings that have gone are
// forgotten first.
func (s shares) room(ctx context.Context, share handler.Share) error {
	if s.known.hasRoom(share) {
		return nil
	}
	rows, err := s.rows(ctx, "the mapped shares", wmi.Query{Namespace: wmi.SMB, Class: smbMapping, Select: []string{"RemotePath"}})
	if err != nil {
		return err
	}
	s.known.retain(remotePaths(rows))
	if s.known.hasRoom(share) {
		return nil
	}
	return fmt.Errorf("map %s: %d shares are mapped at the request of drivers, and no more are taken. Remove those that no volume uses (\"proxy status\" lists them): %w",
		share, maxRemembered, handler.ErrPrecondition)
}

// remotePaths are the shares of mappings; rows that do not say theirs are left out.
func remotePaths(rows []wmi.Instance) map[handler.Share]bool {
	there := map[handler.Share]bool{}
	for _, row := range rows {
		if text, err := row.Text("RemotePath"); err == nil {
			there[handler.Share(strings.ToLower(text))] = true
		}
	}
	return there
}

// remove ends mappings of a share. With force Windows closes open files on them; without it, it refuses while there are any.
func (s shares) remove(ctx context.Context, share handler.Share, mappings []wmi.Instance, force bool) error {
	for _, row := range mappings {
		if err := s.invoke(ctx, string(share), nil, wmi.Call{
			Namespace: wmi.SMB, Class: smbMapping, Path: row.Path, Method: "Remove", In: map[string]any{"Force": force},
		}); err != nil {
			return err
		}
	}
	s.known.forget(share)
	return nil
}

// RemoveSMBGlobalMapping implements [handler.SMB].
func (s shares) RemoveSMBGlobalMapping(ctx context.Context, share handler.Share) error {
	found, err := s.mappings(ctx, share)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return fmt.Errorf("the mapping of %s: not found: %w", share, fs.ErrNotExist)
	}
	return s.remove(ctx, share, found, true)
}
