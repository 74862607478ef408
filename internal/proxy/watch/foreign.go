package watch

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/pipeguard/pipeguard/internal/proxy/peer"
	"github.com/pipeguard/pipeguard/internal/proxy/pipe"
)

// Foreign is a pipe with a name of CSI Proxy that an unknown process serves: its callers act on the node past the access list and
// the audit log.
type Foreign struct {
	Pipe string `json:"pipe"`
	// PID and Program are the server's; 0 and empty if they could not be found out.
	PID     uint32 `json:"pid,omitempty"`
	Program string `json:"program,omitempty"`
	// Doubt is, for people, why they could not.
	Doubt string `json:"doubt,omitempty"`
}

// Search says how pipes are found.
type Search struct {
	// Pipes say where pipes are.
	Pipes pipe.Options
	// Candidates are names that are asked for where pipes cannot be listed.
	Candidates []string
	// Own says which names are served here, or known for other reasons; nil means none.
	Own func(name string) bool

	names func() ([]string, error)
	who   func(ctx context.Context, name string) (Foreign, error)
}

// Bounds of a search.
const (
	// maxForeign is how many pipes are asked about. CSI Proxy has 23.
	maxForeign = 64
	// askWithin is how long a server may take to let its pipe be opened.
	askWithin = 2 * time.Second
)

// Foreign finds such pipes, in the order of their names. Each one is opened and closed again, at the anonymous level. A pipe that is gone
// before it was opened is left out.
func (s Search) Foreign(ctx context.Context) ([]Foreign, error) {
	names, err := s.list()
	if err != nil {
		return nil, err
	}
	var found []Foreign
	for _, name := range names {
		f, err := s.ask(ctx, name)
		if err == nil {
			found = append(found, f)
		} else if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return found, nil
}

// list returns the names that are worth a question.
func (s Search) list() ([]string, error) {
	if s.names == nil {
		s.names = func() ([]string, error) { return pipe.Names(s.Pipes, s.Candidates) }
	}
	names, err := s.names()
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return !looksAlike(name) || s.Own != nil && s.Own(name)
	})
	slices.SortFunc(names, cmp.Compare)
	names = slices.Compact(names)
	return names[:min(len(names), maxForeign)], nil
}

// ask returns an error if there is no server.
func (s Search) ask(ctx context.Context, name string) (Foreign, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	if s.who == nil {
		s.who = s.server
	}
	return s.who(ctx, name)
}

// server opens a pipe and asks the kernel who serves it.
func (s Search) server(ctx context.Context, name string) (Foreign, error) {
	f := Foreign{Pipe: name}
	// Windows takes off a blank at the end, so such a name opens another pipe than the one that is listed.
	if err := pipe.CheckName(name); err != nil {
		f.Doubt = "its name is not opened: " + err.Error()
		return f, nil
	}
	conn, err := pipe.Dial(ctx, name, s.Pipes)
	if isGone(err) {
		return f, err
	}
	if err != nil {
		f.Doubt = err.Error()
		return f, nil
	}
	defer func() { _ = conn.Close() }() // nothing was written that could be lost
	server, err := peer.NewServerResolver().Resolve(conn, peer.Dialled())
	if err != nil {
		f.Doubt = err.Error()
		return f, nil
	}
	who := server.Identity()
	f.PID, f.Program = who.Process.PID, who.Process.Exe
	return f, server.Close()
}

// looksAlike says whether people would take a name for one of CSI Proxy's, whatever its case, its blanks and its dashes.
func looksAlike(name string) bool {
	letters := strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		}
		return -1
	}, name)
	return strings.HasPrefix(letters, "csiproxy")
}
