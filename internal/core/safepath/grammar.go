package safepath

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxLength bounds a path in bytes. It is MAX_PATH and CSI Proxy's own bound, so that no driver sends more; and
// the Win32 calls for mount points and links take no more without the \\?\ prefix, which is refused here.
const MaxLength = 260

// Split takes an absolute Windows path apart: the drive's letter in upper case, and the segments as written.
// It accepts the paths whose [Canonical] form is X:\ followed by segments with one \ between them. Everything else that
// Windows would rewrite, take for a device or a stream, or know under a second name is an error, of type *[Error]:
//
//   - / as a separator: the node API never took it, and one separator leaves nothing to disagree about
//   - "." and "..", and dots or spaces at a segment's end, which Win32 removes
//   - control characters, and " < > | ? * :  (https://learn.microsoft.com/windows/win32/fileio/naming-a-file)
//   - CON, NUL, COM1 and the other device names, with or without an extension
//   - short names like PROGRA~1: a directory has one spelling, so that rules about paths cannot be sidestepped;
//     kubernetes.io~csi is none
func Split(path string) (drive byte, segments []string, err error) {
	refuse := func(format string, args ...any) (byte, []string, error) {
		return 0, nil, &Error{Path: path, Reason: fmt.Sprintf(format, args...)}
	}
	switch {
	case len(path) > MaxLength:
		return refuse("path length %d exceeds maximum characters: %d", len(path), MaxLength)
	case strings.HasPrefix(path, `\`):
		return refuse(`invalid character \ at beginning of path`)
	case !isAbsolute(path):
		return refuse("not an absolute Windows path")
	case !utf8.ValidString(path):
		return refuse("path contains invalid characters (not UTF-8)")
	}
	drive = path[0] &^ 0x20
	rest := Canonical(path)[3:]
	if rest == "" {
		return drive, nil, nil
	}
	segments = strings.Split(rest, `\`)
	for _, s := range segments {
		if fault := faultOf(s); fault != "" {
			return refuse("%s", fault)
		}
	}
	return drive, segments, nil
}

func isAbsolute(path string) bool { return len(path) >= 3 && isLetter(path[0]) && path[1:3] == `:\` }

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// faultOf returns why s is no segment, or "".
func faultOf(s string) string {
	for _, r := range s {
		if forbidden(r) {
			return fmt.Sprintf("path contains invalid characters (%U)", r)
		}
	}
	switch {
	case s == "." || s == "..":
		return fmt.Sprintf("path contains invalid characters (segment %q)", s)
	case s[len(s)-1] == '.' || s[len(s)-1] == ' ':
		return fmt.Sprintf("path segment %q ends in a dot or a space", s)
	case isDevice(s):
		return fmt.Sprintf("path segment %q is a device name", s)
	case isShortName(s):
		return fmt.Sprintf("path segment %q looks like a short name", s)
	}
	return ""
}

// forbidden reports whether no file name has r, or none should: controls and line separators forge
// log lines, bidirectional controls show a path in another order than it has.
func forbidden(r rune) bool {
	if r < utf8.RuneSelf {
		switch r {
		case '"', '<', '>', '|', '?', '*', ':', '/', '\\', 0x7F:
			return true
		}
		return r < 0x20
	}
	return unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control)
}
