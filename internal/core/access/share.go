package access

import (
	"fmt"
	"strings"

	"github.com/pipeguard/pipeguard/internal/core/safepath"
)

// Share is a pattern of SMB shares in lower case. A server that begins with "*." and a share that ends with "*" stand for
// many; the star is gone from both texts.
type Share struct {
	server, name         string
	anyServer, anyEnding bool
}

// maxShare and maxService bound patterns, in bytes. No server and share has a longer name together, and no service.
const (
	maxShare   = 512
	maxService = 256
)

// ParseShare accepts \\server\share, with one star at the beginning of the server or at the end of the share or both.
func ParseShare(text string) (Share, error) {
	server, name, ok := cutShare(safepath.Lower(text))
	if !ok || len(text) > maxShare {
		return Share{}, fmt.Errorf(`share %q: want \\server\share, such as \\files.example\data or \\files.example\*`, text)
	}
	s := Share{server: server, name: name}
	if suffix, isAny := strings.CutPrefix(server, "*."); isAny {
		s.server, s.anyServer = "."+suffix, true
	}
	if prefix, isAny := strings.CutSuffix(name, "*"); isAny {
		s.name, s.anyEnding = prefix, true
	}
	switch {
	case strings.Contains(s.server, "*") || strings.Trim(s.server, ".") == "":
		return Share{}, fmt.Errorf(`share %q: a star in the server stands for the beginning of its name, before a dot: \\*.files.example\data`, text)
	case strings.Contains(s.name, "*"):
		return Share{}, fmt.Errorf(`share %q: a star in the share stands for the end of its name: \\files.example\pvc-*`, text)
	}
	return s, nil
}

// cutShare takes \\server\share apart. What has more or fewer parts names no share.
func cutShare(text string) (server, name string, ok bool) {
	rest, ok := strings.CutPrefix(text, `\\`)
	server, name, hasName := strings.Cut(rest, `\`)
	return server, name, ok && hasName && server != "" && name != "" && !strings.ContainsAny(rest, `/:?"<>|`) && !strings.Contains(name, `\`)
}

// Holds compares with a share as a request names it. A star for the server's beginning stands for at least one character.
func (s Share) Holds(text string) bool {
	server, name, ok := cutShare(safepath.Lower(text))
	if !ok {
		return false
	}
	isServer := !s.anyServer && server == s.server || s.anyServer && len(server) > len(s.server) && strings.HasSuffix(server, s.server)
	return isServer && (name == s.name || s.anyEnding && strings.HasPrefix(name, s.name))
}

// Includes says that every share that o holds is one that s holds.
func (s Share) Includes(o Share) bool {
	server := s.server == o.server && s.anyServer == o.anyServer || s.anyServer && strings.HasSuffix(o.server, s.server) && len(o.server) > len(s.server)
	name := s.name == o.name && s.anyEnding == o.anyEnding || s.anyEnding && strings.HasPrefix(o.name, s.name)
	return server && name
}

// CheckService accepts the short name of one service.
func CheckService(name string) error {
	if name == "" || len(name) > maxService || strings.ContainsAny(name, `/\*?`) || strings.TrimSpace(name) != name {
		return fmt.Errorf("service %q: want the short name of one service, such as MSiSCSI", name)
	}
	return nil
}
