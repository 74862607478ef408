package pipepath

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Canonical says what path names. It takes linear time, and no input makes it panic.
//
// The canonical text is stable: Canonical(Canonical(p).Canonical) has the same text. Its kind is the same
// too, except where the text is a plain drive path (KindDrive) or a name of the NT namespace (KindNTDevice,
// KindNTOther, the ancestor \device): written as a hostPath, those are ordinary paths, but for the devices of sessions and silos.
func Canonical(path string) Name {
	rest, scheme := cutScheme(path)
	if !scheme && ordinary(path) {
		return Name{Kind: KindPath, Canonical: path}
	}
	text := flip(Fold(rest))
	if scheme {
		text = `\\` + text
	}

	var space [16]string // deep enough for every real device path, so that the slice stays on the stack
	segs, odd := split(space[:0], text, false)
	if !strings.HasPrefix(text, `\\`) && !singleLead(segs, odd) {
		return Name{Kind: KindPath, Canonical: path}
	}
	switch {
	case unspeakable(text):
		return Name{Kind: KindMalformed, Canonical: text}
	case odd.dotdot:
		return Name{Kind: KindMalformedDotdot, Canonical: text}
	case len(segs) == 0:
		return Name{Kind: KindAncestor, Canonical: `\\`}
	}

	r := reader{text: text}
	name := r.read(segs)
	if name.Kind.neverMatches() && odd.dropped {
		// Win32 removes such segments, the NT namespace takes them for names. Where only a host of such a name
		// leads to the pipes (\\?\UNC\.\pipe\x), that one counts.
		segs, _ = split(nil, text, true)
		switch literal := r.read(segs); literal.Kind {
		case KindPipe, KindPipeRoot:
			return literal
		}
	}
	return name
}

// ordinary reports, without allocating, that path cannot be a device or UNC path: there are not two
// leading separators, and behind a single one there is nothing that singleLead looks at.
// No letter but d and D folds to d, and none but g and G to g, so that one byte decides. To s folds U+017F as well, which begins with 0xC5.
func ordinary(path string) bool {
	if len(path) < 2 || !isSeparator(path[0]) {
		return true
	}
	switch path[1] {
	case '\\', '/', '?', '.', ' ', 'd', 'D', 'g', 'G', 's', 'S', 0xC5:
		return false
	}
	return !strings.Contains(path, "..")
}

// oddities are what a path had that its segments no longer show.
type oddities struct {
	dropped bool // a segment of one dot, or of spaces, was left out
	dotdot  bool // a segment was "..", or nothing but dots and spaces with two dots or more
}

// split appends the segments of folded text to segs. The first is the marker or host and kept as it is;
// the others lose trailing dots and spaces, and those that become empty are dropped; if hosts is set, one that
// stands where a redirector has its host is kept as written.
//
// "..." is a legal name to Windows, and ".. " may be read as ".." by one layer and as a name by the next.
// Both count as "..": they are of no use, and so a dot appended to a ".." does not make it harmless.
func split(segs []string, text string, hosts bool) ([]string, oddities) {
	var odd oddities
	for raw := range strings.SplitSeq(text, `\`) {
		if raw == "" {
			continue
		}
		seg := strings.TrimRight(raw, ". ")
		if seg == "" && strings.Count(raw, ".") > 1 {
			odd.dotdot = true
		}
		switch {
		case len(segs) == 0:
			segs = append(segs, raw)
		case seg != "":
			segs = append(segs, seg)
		case hosts && hasHost(segs[len(segs)-1]):
			segs = append(segs, raw)
		default:
			odd.dropped = true
		}
	}
	return segs, odd
}

// singleLead reports whether a path with one leading separator is a device path all the same: \??\x, which is the NT form
// of \\?\x, its other names \dosdevices\x and \global??\x, those of sessions and silos, \device\namedpipe\x and \device\mup\host\share. The kubelet puts "c:" before such paths,
// but not if they hold a colon, and not every runtime has a kubelet before it.
//
// Behind one separator a dot is no marker: \.\x is \x to whatever cleans paths, and so these names count behind it. filepath.Clean
// of Go before 1.21.5 made \??\x of \a\..\??\x too (CVE-2023-45283); with ".." in it, a path needs only to mention the name to be refused.
func singleLead(segs []string, odd oddities) bool {
	if odd.dotdot {
		return slices.ContainsFunc(segs, func(s string) bool {
			s = strings.TrimRight(s, ". ") // the first is as it was written
			return isDOSDirectory(s) || isRedirector(s) || s == "namedpipe"
		})
	}
	if len(segs) > 0 && strings.TrimRight(segs[0], ". ") == "" {
		segs = segs[1:]
	}
	if len(segs) == 0 {
		return false
	}
	first, behind := strings.TrimRight(segs[0], ". "), segs[1:]
	switch first {
	case "??":
		return true
	case "sessions", "silos":
		return isPrivate(first, behind)
	case "dosdevices", "global??":
		return len(behind) > 0
	case "device":
		return len(behind) > 0 && (behind[0] == "namedpipe" || isRedirector(behind[0]) && len(behind) > 1)
	}
	return false
}

// unspeakable reports whether text has a character that cuts names off (NUL), forges log lines (controls)
// or shows a name in another order than it has (bidirectional controls). U+FFFD stands for bytes that were
// not UTF-8: what they will be to Windows is anyone's guess.
func unspeakable(text string) bool {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c < 0x20 || c == 0x7F:
			return true
		case c >= utf8.RuneSelf:
			return strings.ContainsFunc(text[i:], func(r rune) bool {
				return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == utf8.RuneError
			})
		}
	}
	return false
}
