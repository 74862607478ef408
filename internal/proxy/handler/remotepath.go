package handler

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Share names a share as \\server\share, in lower case. Only [ParseRemotePath] should make one.
type Share string

// RemotePath is a path on a share of another machine. Only [ParseRemotePath] makes one; the zero RemotePath names nothing.
type RemotePath struct {
	share Share
	rel   []string // as the caller wrote them
}

// Share returns the share that the path lies on.
func (p RemotePath) Share() Share { return p.share }

// IsZero reports whether p is the zero RemotePath.
func (p RemotePath) IsZero() bool { return p.share == "" }

// String returns the whole path, without a separator at its end.
func (p RemotePath) String() string {
	if len(p.rel) == 0 {
		return string(p.share)
	}
	return string(p.share) + `\` + strings.Join(p.rel, `\`)
}

// Bounds of remote paths, in bytes, except for names of shares, in characters
// (https://learn.microsoft.com/windows/win32/api/lmshare/ns-lmshare-share_info_502).
const (
	maxRemotePath = 1024
	maxShareName  = 80
	maxSegment    = 255
)

// ParseRemotePath accepts \\server\share and what lies below it, with separators of either kind. The server is a host
// name, an IPv4 address, or an IPv6 address as a name of ipv6-literal.net; nothing in the path can be a device, the
// end of a text in a query, or a way up. Shares by which a machine is administered are refused: they hold whole drives.
func ParseRemotePath(s string) (RemotePath, error) {
	if s == "" {
		return RemotePath{}, invalid("remote path is empty")
	}
	p, fault := parseRemotePath(s)
	if fault != "" {
		return RemotePath{}, invalid("remote path (%s) is invalid: %s", shown(s), fault)
	}
	return p, nil
}

func parseRemotePath(s string) (_ RemotePath, fault string) {
	if len(s) > maxRemotePath {
		return RemotePath{}, fmt.Sprintf("it is longer than %d bytes", maxRemotePath)
	}
	rest, ok := strings.CutPrefix(strings.ReplaceAll(s, "/", `\`), `\\`)
	if !ok {
		return RemotePath{}, `it does not begin with \\`
	}
	server, rest, _ := strings.Cut(rest, `\`)
	if !isServer(server) {
		return RemotePath{}, "there is no server of that name"
	}
	var segments []string
	for segment := range strings.SplitSeq(rest, `\`) {
		if segment == "" { // Windows takes several separators for one
			continue
		}
		if fault := segmentFault(segment); fault != "" {
			return RemotePath{}, fault
		}
		segments = append(segments, segment)
	}
	if len(segments) == 0 {
		return RemotePath{}, "it names no share"
	}
	share := segments[0]
	switch {
	case utf8.RuneCountInString(share) > maxShareName:
		return RemotePath{}, fmt.Sprintf("the name of the share is longer than %d characters", maxShareName)
	case strings.ContainsAny(share, `[]+=;,`):
		return RemotePath{}, "no share can have that name"
	case isAdministrative(share):
		return RemotePath{}, "the share is for administration"
	case isNoShare(share):
		return RemotePath{}, "it names no share"
	}
	p := RemotePath{share: Share(`\\` + strings.ToLower(server) + `\` + strings.ToLower(share))}
	if len(segments) > 1 {
		p.rel = segments[1:]
	}
	return p, ""
}

// segmentFault says what is wrong with a segment. A letter whose lower case is one of another alphabet, as that of
// the Kelvin sign is, would make two names one.
func segmentFault(s string) string {
	switch {
	case len(s) > maxSegment:
		return fmt.Sprintf("a segment is longer than %d bytes", maxSegment)
	case !utf8.ValidString(s):
		return "it is not UTF-8"
	case strings.HasSuffix(s, "."), strings.HasSuffix(s, " "), strings.HasPrefix(s, " "):
		return "a segment begins with a space, or ends with a dot or a space"
	}
	for _, r := range s {
		if !unicode.IsPrint(r) || strings.ContainsRune("\"'`<>|:*?", r) || r >= utf8.RuneSelf && unicode.ToLower(r) < utf8.RuneSelf {
			return fmt.Sprintf("it contains invalid characters (%U)", r)
		}
	}
	return ""
}

// isAdministrative knows the shares that Windows makes by itself: of drives, of its own directory, and for pipes.
func isAdministrative(share string) bool {
	name, hidden := strings.CutSuffix(strings.ToLower(share), "$")
	return hidden && (len(name) <= 1 || name == "admin" || name == "ipc" || name == "print" || name == "fax")
}

// isNoShare knows the names that mean something else in the place of a share, on any server: its pipes, its mailslots, and the root of a WebDAV server.
func isNoShare(share string) bool {
	switch strings.ToLower(share) {
	case "pipe", "mailslot", "davwwwroot":
		return true
	}
	return false
}

// shown is a text of a caller within an error whose beginning clients know: not quoted, but cut, and with nothing in
// it that could end a line of a log.
func shown(s string) string {
	const limit = 80
	cut := ""
	if len(s) > limit {
		s, cut = s[:limit], fmt.Sprintf("[%d bytes cut]", len(s)-limit)
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return utf8.RuneError
	}, s) + cut
}
