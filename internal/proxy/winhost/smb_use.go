package winhost

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/pipeguard/pipeguard/internal/proxy/handler"
	"github.com/pipeguard/pipeguard/internal/proxy/wmi"
)

// use says why a share may be in use, and nil if it is not: no file of it is open, and no link below the working directories
// leads to it. If that cannot be found out, the share counts as in use.
func (s shares) use(ctx context.Context, share handler.Share) error {
	if err := s.opens(ctx, share); err != nil {
		return err
	}
	return s.eachLink(ctx, func(to handler.RemotePath, place string) error {
		if to.Share() == share {
			return fmt.Errorf("a link leads to it: %s", place)
		}
		return nil
	})
}

// opens is an error unless the host shows connections to a share and none of them has a file open. The share was looked at just
// now, so that a host that shows no connection to it does not show them all.
// https://learn.microsoft.com/previous-versions/windows/desktop/smb/msft-smbconnection
func (s shares) opens(ctx context.Context, share handler.Share) error {
	server, name, _ := strings.Cut(strings.TrimPrefix(string(share), `\\`), `\`)
	connections, err := s.rows(ctx, "the connections to "+string(share), wmi.Query{
		Namespace: wmi.SMB, Class: "MSFT_SmbConnection", Select: []string{"ServerName", "ShareName", "NumOpens"},
		Where: []wmi.Equal{{Property: "ServerName", Value: server}, {Property: "ShareName", Value: name}},
	})
	switch {
	case err != nil:
		return err
	case len(connections) == 0:
		return errors.New("the host shows no connection to it")
	}
	for _, c := range connections {
		if opens, err := c.Uint("NumOpens"); err != nil || opens > 0 {
			return errors.Join(fmt.Errorf("%d files of it are open", opens), err)
		}
	}
	return nil
}

// Bounds of a walk through the working directories. A node with 250 pods has some ten thousand names there.
const (
	maxWalked    = 100_000 // names
	maxWalkDepth = 64      // directories
)

// emptyDir is the kubelet's directory for volumes whose contents are the pod's own. No driver is given a path in one, and what
// pods put there must not decide about shares.
const emptyDir = "kubernetes.io~empty-dir"

// eachLink calls visit with every link below the working directories that leads to a share. No link is followed.
func (p places) eachLink(ctx context.Context, visit func(to handler.RemotePath, place string) error) error {
	left := maxWalked
	for _, root := range p.roots.Dirs() {
		d, err := p.open(root)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("open working directory %s: %w", root, err)
		}
		w := walk{ctx, &left, visit}
		if err := errors.Join(w.down(d, root, 0), d.Close()); err != nil {
			return err
		}
	}
	return nil
}

// walk is one look through working directories.
type walk struct {
	ctx   context.Context //nolint:containedctx // of the one call that the walk is for
	left  *int            // names
	visit func(to handler.RemotePath, place string) error
}

func (w walk) down(d dir, place string, depth int) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	names, err := d.Names(*w.left + 1)
	if err != nil {
		return fmt.Errorf("list %s: %w", place, err)
	}
	if *w.left -= len(names); *w.left < 0 || depth > maxWalkDepth {
		return fmt.Errorf("there is more below the working directories than is looked at for links (%d names)", maxWalked)
	}
	for _, name := range names {
		// An entry that goes meanwhile is no link any more.
		if err := w.look(d, name, place+`\`+name, depth); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (w walk) look(d dir, name, place string, depth int) error {
	found, err := d.Stat(name)
	switch {
	case err != nil:
		return err
	case found.kind == link:
		text, err := d.Readlink(name)
		if err != nil || !onShare(text) {
			return err
		}
		remote, err := handler.ParseRemotePath(plain(text))
		if err != nil {
			return nil //nolint:nilerr // no share can have that name
		}
		return w.visit(remote, place)
	case found.kind != directory || strings.EqualFold(name, emptyDir):
		return nil
	}
	next, err := d.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(w.down(next, place, depth+1), next.Close())
}
