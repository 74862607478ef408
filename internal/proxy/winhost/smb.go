package winhost

import (
	"context"
	"fmt"
	"io/fs"
	"slices"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/logkeys"
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

const (
	smbMapping = "MSFT_SmbGlobalMapping"
	mappingOK  = 0 // the Status of a mapping that is connected
)

// mappings returns how a share is mapped: usually once or not at all, and once more for each drive letter that an
// administrator gave it.
func (s shares) mappings(ctx context.Context, share handler.Share) ([]wmi.Instance, error) {
	return s.rows(ctx, "the mapping of "+string(share), wmi.Query{
		Namespace: wmi.SMB, Class: smbMapping,
		Where: []wmi.Equal{{Property: "RemotePath", Value: string(share)}},
	})
}

// NewSMBGlobalMapping implements [handler.SMB]. The place of the link is looked at before the share is mapped.
//
// A mapping that answers is kept if this process made it with the same credentials. If it made it with others, it is
// mapped again. If it did not make it (it was started since, or an administrator was here), nobody can tell the
// credentials; then the share is mapped again if no file of it is open, and kept if one is, because to map again
// closes them all under the pods that use them.
//
// A mapping is undone for a link that cannot be made only if the share was not mapped before: others may use it.
func (s shares) NewSMBGlobalMapping(ctx context.Context, m handler.SMBMapping) error {
	share := m.Remote.Share()
	if share == "" {
		return fmt.Errorf("a remote path that was never checked: %w", fs.ErrInvalid)
	}
	link, err := s.linkFor(ctx, m)
	if err != nil {
		return withhold(err, m)
	}
	found, err := s.mappings(ctx, share)
	if err != nil {
		return withhold(err, m)
	}
	if !s.keeps(ctx, share, m, found) {
		if err := s.remove(ctx, share, found); err != nil {
			return withhold(err, m)
		}
		if err := s.create(ctx, share, m); err != nil {
			return withhold(err, m)
		}
	}
	if err := link(); err != nil {
		if len(found) == 0 {
			err = s.undo(ctx, share, err)
		}
		return withhold(err, m)
	}
	return nil
}

// keeps says whether the mapping that is there will do.
func (s shares) keeps(ctx context.Context, share handler.Share, m handler.SMBMapping, found []wmi.Instance) bool {
	if !connected(found) || !s.answers(share) {
		return false
	}
	switch s.known.compare(share, m) {
	case unchanged:
		return true
	case changed:
		return false
	}
	return m.Username == "" || s.inUse(ctx, share)
}

// connected says whether a mapping works, as far as the host knows. One that does not say is mapped again.
func connected(mappings []wmi.Instance) bool {
	return slices.ContainsFunc(mappings, func(row wmi.Instance) bool {
		status, err := row.Uint("Status")
		return err == nil && status == mappingOK
	})
}

// answers says whether a share can be looked at. Every failure means that it cannot.
func (s shares) answers(share handler.Share) bool {
	answers, err := s.network.Answers(string(share))
	if err != nil || !answers {
		s.log.Info("a mapped share does not answer and is mapped again", zap.String(logkeys.Name, string(share)), zap.Error(err))
	}
	return err == nil && answers
}

// inUse says whether somebody has a file of a share open, or may have: every failure means that.
func (s shares) inUse(ctx context.Context, share handler.Share) bool {
	idle, err := s.idle(ctx, share)
	if err != nil || !idle {
		s.log.Warn("a share is in use that was mapped before this process started: its credentials are not compared and not replaced",
			zap.String(logkeys.Name, string(share)), zap.Error(err))
	}
	return err != nil || !idle
}

// create maps a share and remembers with what credentials.
func (s shares) create(ctx context.Context, share handler.Share, m handler.SMBMapping) error {
	in := map[string]any{"RemotePath": string(share), "RequirePrivacy": s.requirePrivacy}
	if m.Username != "" {
		in["Credential"] = credential(m)
	}
	_, err := s.invoke(ctx, string(share), nil, wmi.Call{Namespace: wmi.SMB, Class: smbMapping, Method: "Create", In: in})
	if err == nil {
		s.known.remember(share, m)
	}
	return err
}

// remove ends mappings of a share, whoever uses them.
func (s shares) remove(ctx context.Context, share handler.Share, mappings []wmi.Instance) error {
	s.known.forget(share)
	for _, row := range mappings {
		if _, err := s.invoke(ctx, string(share), nil, wmi.Call{
			Namespace: wmi.SMB, Class: smbMapping, Path: row.Path, Method: "Remove", In: map[string]any{"Force": true},
		}); err != nil {
			return err
		}
	}
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
	return s.remove(ctx, share, found)
}
