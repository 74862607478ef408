package winhost

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/pipeguard/pipeguard/internal/core/safepath"
	"github.com/pipeguard/pipeguard/internal/proxy/handler"
	"github.com/pipeguard/pipeguard/internal/proxy/wmi"
)

// linkFor returns a function that makes the link to a share, after a check that it can be made.
func (s shares) linkFor(ctx context.Context, m handler.SMBMapping) (func() error, error) {
	if m.Local.IsZero() {
		return func() error { return nil }, nil
	}
	tree, names, err := s.at(ctx, m.Local)
	if err != nil {
		return nil, err
	}
	text := m.Remote.String() + `\` // containerds whose Go resolves no link to a bare share need it
	free := func(at at) error {
		err := isLink(at, text, leadTheSameWay)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	if err := tree.with(names, free); err != nil {
		return nil, wrap("make link", m.Local, err)
	}
	return func() error {
		return wrap("make link", m.Local, tree.link(names, text, true, leadTheSameWay))
	}, nil
}

// leadTheSameWay compares link texts.
func leadTheSameWay(a, b string) bool { return safepath.EqualFold(plain(a), plain(b)) }

// plain is a link text without the separator at its end. The old servers wrote \\?\\\server\share\.
func plain(text string) string {
	if rest, isOld := strings.CutPrefix(text, `\\?\`); isOld && strings.HasPrefix(rest, `\\`) {
		text = rest
	}
	return strings.TrimSuffix(text, `\`)
}

// onShare says whether a link's text leads to another machine.
func onShare(text string) bool {
	text = plain(text)
	return strings.HasPrefix(text, `\\`) && !strings.HasPrefix(text, `\\?\`) && !strings.HasPrefix(text, `\\.\`)
}

// reach says whether the share that a link leads to is mapped and connected. It asks the system about its mappings, and never the
// server: this service would log on to whatever server the link's author chose, or a mapped server refers to.
func (s shares) reach(ctx context.Context, text string) (bool, error) {
	remote, err := handler.ParseRemotePath(plain(text))
	if err != nil {
		return false, fmt.Errorf("a link to %s is not followed: %w", text, fs.ErrPermission)
	}
	found, err := s.mappings(ctx, remote.Share())
	return err == nil && slices.ContainsFunc(found, isConnected), err
}

// undoTime is how long a mapping that was made for nothing may take to go.
const undoTime = 30 * time.Second

// undo removes the mapping that was made for a link that failed, also if the caller has gone meanwhile.
func (s shares) undo(ctx context.Context, share handler.Share, failure error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	made, err := s.mappings(ctx, share)
	if err == nil {
		err = s.remove(ctx, share, made, false)
	}
	return errors.Join(failure, err)
}

// isConnected says whether a mapping works, as far as the host knows.
func isConnected(row wmi.Instance) bool {
	status, err := row.Uint("Status")
	return err == nil && status == mappingOK
}
