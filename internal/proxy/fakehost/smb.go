package fakehost

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"slices"

	"github.com/pipeguard/pipeguard/internal/core/safepath"
	"github.com/pipeguard/pipeguard/internal/proxy/handler"
)

// Share is a share of another machine on the network.
type Share struct {
	Name               handler.Share
	Username, Password string // the user that it admits; every process of the node if there is no name
	Away               bool   // its server does not answer
}

// Shares of the default network.
const (
	DataShare    handler.Share = `\\files.example\data` // for DataUser
	DataUser                   = `EXAMPLE\writer`
	DataPassword               = "data-s3cret"
	OfferedShare handler.Share = `\\files.example\public` // for the node itself
	AbsentShare  handler.Share = `\\away.example\data`    // whose server does not answer
)

func defaultShares() []Share {
	return []Share{
		{Name: DataShare, Username: DataUser, Password: DataPassword},
		{Name: OfferedShare},
		{Name: AbsentShare, Away: true},
	}
}

type share struct {
	Share
	mapped             bool
	username, password string // with which it was mapped
	by                 string // who asked for it
}

// admits says whether a share can be mapped with some credentials.
func (s *share) admits(username, password string) error {
	switch {
	case s.Away:
		return fmt.Errorf("share %s: its server does not answer: %w", s.Name, handler.ErrUnavailable)
	case fold(s.Username) != fold(username) || s.Username != "" && s.Password != password:
		return fmt.Errorf("share %s: the user name or password is wrong: %w", s.Name, fs.ErrPermission)
	}
	return nil
}

func (h *Host) share(name handler.Share) (*share, error) {
	s := h.shares[name]
	if s == nil {
		return nil, fmt.Errorf("share %s: %w", name, fs.ErrNotExist)
	}
	return s, nil
}

func (h *Host) isMapped(name handler.Share) bool {
	s := h.shares[name]
	return s != nil && s.mapped
}

// NewSMBGlobalMapping implements [handler.SMB]. The ledger has no password.
func (h *Host) NewSMBGlobalMapping(ctx context.Context, m handler.SMBMapping) error {
	return h.change(ctx, "NewSMBGlobalMapping", []string{m.Remote.String(), m.Local.String(), m.Username, m.Password.String()}, func() (bool, error) {
		s, err := h.share(m.Remote.Share())
		if err != nil {
			return false, err
		}
		link, err := h.linkTo(m.Remote, m.Local) // first, so that nothing has to be undone
		if err != nil {
			return false, failed("link", m.Local, err)
		}
		same := s.mapped && s.username == m.Username && s.password == m.Password.Reveal()
		if s.mapped && !same && h.linksTo(s.Name) > 0 {
			return false, fmt.Errorf("%s is mapped with other credentials and is in use: %w", s.Name, fs.ErrPermission)
		}
		if !same {
			s.mapped = false // it was not in use
			if err := s.admits(m.Username, m.Password.Reveal()); err != nil {
				return false, err
			}
		}
		s.mapped, s.username, s.password = true, m.Username, m.Password.Reveal()
		if !same {
			s.by = m.By
		}
		if link != nil {
			link()
		}
		return !same || link != nil, nil
	})
}

// Mappings implements [handler.Mapper].
func (h *Host) Mappings(ctx context.Context) ([]handler.Mapping, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []handler.Mapping
	for _, s := range h.shares {
		if s.mapped {
			list = append(list, handler.Mapping{Share: s.Name, Connected: !s.Away, Links: h.linksTo(s.Name), By: s.by})
		}
	}
	slices.SortFunc(list, func(a, b handler.Mapping) int { return cmp.Compare(a.Share, b.Share) })
	return list, nil
}

// linksTo counts the links that lead to a share.
func (h *Host) linksTo(name handler.Share) (count int) {
	var below func(n *node)
	below = func(n *node) {
		if n.kind == kindLink && n.remote.Share() == name {
			count++
		}
		for _, child := range n.children {
			below(child)
		}
	}
	for _, drive := range h.drives {
		below(drive)
	}
	return count
}

// linkTo returns what makes the link, or nil if nothing has to be done.
func (h *Host) linkTo(remote handler.RemotePath, local safepath.Path) (func(), error) {
	if local.IsZero() {
		return nil, nil //nolint:nilnil // there is no link to make
	}
	at, err := h.find(local, false)
	switch {
	case err != nil:
		return nil, err
	case at.node == nil:
		return func() { at.set(&node{name: at.name, kind: kindLink, remote: remote}) }, nil
	case at.node.kind == kindLink && fold(at.node.remote.String()) == fold(remote.String()):
		return nil, nil //nolint:nilnil // it is there
	}
	return nil, fs.ErrExist
}

// RemoveSMBGlobalMapping implements [handler.SMB]. Links to the share stay.
func (h *Host) RemoveSMBGlobalMapping(ctx context.Context, name handler.Share) error {
	return h.change(ctx, "RemoveSMBGlobalMapping", []string{string(name)}, func() (bool, error) {
		if !h.isMapped(name) {
			return false, fmt.Errorf("mapping of %s: %w", name, fs.ErrNotExist)
		}
		s := h.shares[name]
		s.mapped, s.username, s.password = false, "", ""
		return true, nil
	})
}
