package apiserver

import (
	"net"
	"net/netip"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/pipeguard/pipeguard/internal/core/safepath"
)

// oneSpelling returns the same text for spellings of one thing. It judges nothing: a text that cannot name a thing
// of its kind is returned as it is, for the record.
func oneSpelling(kind, s string) string {
	switch kind {
	case kindVolume:
		return volumeSpelling(s)
	case kindShare:
		return ShareSpelling(s)
	case kindTarget, kindService: // case does not distinguish them
		return safepath.Lower(s)
	}
	return s
}

// volumeSpelling returns \\?\Volume{guid}\ with the GUID in lower case.
func volumeSpelling(s string) string {
	const prefix, suffix, size = `\\?\Volume{`, `}\`, 49
	if len(s) != size || !strings.EqualFold(s[:len(prefix)], prefix) || !strings.HasSuffix(s, suffix) {
		return s
	}
	return prefix + strings.ToLower(s[len(prefix):])
}

// ShareSpelling returns \\server\share in lower case, without what follows. Several separators are one, but not at
// the beginning.
func ShareSpelling(s string) string {
	rest, ok := strings.CutPrefix(strings.ReplaceAll(s, "/", `\`), `\\`)
	server, rest, _ := strings.Cut(rest, `\`)
	share, _, _ := strings.Cut(strings.TrimLeft(rest, `\`), `\`)
	if !ok || server == "" || share == "" {
		return s
	}
	return `\\` + safepath.Lower(server) + `\` + safepath.Lower(share)
}

// DefaultPortalPort is the port of a portal that names none (RFC 7143, section 13).
const DefaultPortalPort = 3260

// portalOf names a portal: its address, and the port that a connection would go to.
func portalOf(m protoreflect.Message) string {
	fields := m.Descriptor().Fields()
	address, port := fields.ByName("target_address"), fields.ByName("target_port")
	if address == nil || port == nil {
		return ""
	}
	host, number := m.Get(address).String(), m.Get(port).Uint()
	if host == "" {
		return ""
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		host = ip.String()
	}
	if number == 0 {
		number = DefaultPortalPort
	}
	return net.JoinHostPort(strings.ToLower(host), strconv.FormatUint(number, 10))
}
