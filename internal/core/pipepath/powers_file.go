package pipepath

import (
	"strings"
	"unicode/utf8"
)

// maxDirectory bounds a listed directory in bytes, as the API bounds the paths of nodes.
const maxDirectory = 1024

// directory is a listed directory. Without segments it is the root of its drive.
type directory struct {
	drive byte // lower case
	segs  []string
}

// parseDirectory accepts one plain spelling, with separators and case as one likes. Whoever lists C:\PROGRA~1 means something that
// cannot be told from other names, and whoever lists a device means something that is judged without a list.
func parseDirectory(s string) (d directory, fault string) {
	switch {
	case len(s) > maxDirectory:
		return d, "is longer than 1024 bytes"
	case !utf8.ValidString(s) || unspeakable(s):
		return d, "has a character that no path has"
	}
	text := flip(Fold(s))
	if len(text) < 3 || !isDrive(text[:2]) || text[2] != '\\' {
		return d, `is not absolute: write it with its drive, as in C:\Windows`
	}
	d.drive = text[0]
	for seg := range strings.SplitSeq(text[3:], `\`) {
		switch {
		case seg == "":
			continue
		case strings.ContainsAny(seg, `:*?"<>|`):
			return d, "has a character that no path has"
		case strings.TrimRight(seg, ". ") != seg:
			return d, "has a segment that ends in a dot or a space, which Windows removes"
		case isShort(seg):
			return d, "has a short name: write the long one"
		}
		d.segs = append(d.segs, seg)
	}
	return d, ""
}

// system32 is where a service is started: a relative path may be taken from there.
var system32 = [...]string{"windows", "system32"}

// file judges a path of kind path or drive: C:\x, \\?\C:\x, \x and x.
func (p *Powers) file(name Name) Power {
	path := name.Canonical
	drive, rest, given := cutDrive(path)
	if name.Kind == KindDrive && rest == "" {
		return PowerDisk // \\.\C: is the volume below its file system
	}
	absolute := rest != "" && isSeparator(rest[0])
	listed := p.lists(drive)
	if path == "" || !listed && (given || !absolute) {
		return PowerNone
	}
	var space [16]string // deep enough for ordinary paths, so that the slice stays on the stack
	segs, odd := resolve(space[:0], flip(Fold(rest)))
	switch {
	case !listed:
	case odd == beyond, odd == above && !absolute, unspeakable(path): // where it leads is anyone's guess
		return PowerDirectory
	case p.holds(drive, segs):
		return PowerDirectory
	case !absolute && drive == 'c' && p.holds(drive, append(system32[:len(system32):len(system32)], segs...)):
		return PowerDirectory
	}
	if absolute && !given {
		return object(segs)
	}
	return PowerNone
}

// object judges \device\x, \global??\x and \dosdevices\x, which are directories on C: to the kubelet. A runtime that is not
// asked by a kubelet may take them for names of the NT namespace.
func object(segs []string) Power {
	if len(segs) == 0 {
		return PowerNone
	}
	switch segs[0] {
	case "device", "global??", "dosdevices", "??":
		if len(segs) == 1 || len(segs[1]) == 1 { // all of them, or a drive, whose colon resolve has cut off
			return PowerDisk
		}
		if isDisk(strings.Join(segs[1:], `\`)) {
			return PowerDisk
		}
	}
	return PowerNone
}

// cutDrive splits path into the drive, 'c' if it has none, and the rest. Separators and segments of one dot before the drive do
// not hide it: /c:/x and .\c:\x, of which filepath.Clean of Go before 1.19.6 made c:\x (CVE-2022-41722).
func cutDrive(path string) (drive byte, rest string, given bool) {
	tail := path
	for {
		end := strings.IndexAny(tail, `\/`)
		if end < 0 || strings.Trim(tail[:end], ". ") != "" || strings.Count(tail[:end], ".") > 1 {
			break
		}
		tail = tail[end+1:]
	}
	_, size := utf8.DecodeRuneInString(tail)
	if size == len(tail) || tail[size] != ':' {
		return 'c', path, false
	}
	letter := tail[0] | 0x20 // lower case, without allocating
	if size > 1 {
		letter = Fold(tail[:size])[0] // U+212A is a k
	}
	if letter < 'a' || 'z' < letter {
		return 'c', path, false
	}
	return letter, tail[size+1:], true
}

// oddity says what resolve could not make sense of.
type oddity int

const (
	plain  oddity = iota
	above         // ".." led above the beginning
	beyond        // a segment is "..." or ".. ", a name to one layer and ".." to the next
)

// resolve appends the segments of folded text to segs as Windows reads them: without trailing dots and spaces and the names of
// streams, and with each ".." taking away the segment before it.
func resolve(segs []string, text string) ([]string, oddity) {
	odd := plain
	for raw := range strings.SplitSeq(text, `\`) {
		if raw == ".." {
			if len(segs) == 0 {
				odd = above
				continue
			}
			segs = segs[:len(segs)-1]
			continue
		}
		seg, _, _ := strings.Cut(raw, ":")
		if seg = strings.TrimRight(seg, ". "); seg != "" {
			segs = append(segs, seg)
		} else if strings.Count(raw, ".") > 1 {
			return nil, beyond
		}
	}
	return segs, odd
}

func (p *Powers) lists(drive byte) bool {
	for _, d := range p.directories {
		if d.drive == drive {
			return true
		}
	}
	return false
}

// holds reports whether segs on a drive are a listed directory, below one, or above one. Above all is the root, which counts only
// if it is listed itself.
func (p *Powers) holds(drive byte, segs []string) bool {
	for _, d := range p.directories {
		if d.drive == drive && d.related(segs) {
			return true
		}
	}
	return false
}

func (d directory) related(segs []string) bool {
	if len(segs) == 0 || len(d.segs) == 0 {
		return len(segs) == len(d.segs)
	}
	for i := range min(len(segs), len(d.segs)) {
		if segs[i] != d.segs[i] && !isShort(segs[i]) {
			return false
		}
	}
	return true
}

// isShort reports whether a segment may be the short name of any other: WINDOW~1, WI7F3A~4.
func isShort(seg string) bool {
	for i := 0; ; i++ {
		j := strings.IndexByte(seg[i:], '~')
		if j < 0 {
			return false
		}
		if i += j; i+1 < len(seg) && '0' <= seg[i+1] && seg[i+1] <= '9' {
			return true
		}
	}
}
