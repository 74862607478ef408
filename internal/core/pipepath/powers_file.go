package pipepath

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// system32 is where a service is started: a relative path may be taken from there.
var system32 = [...]string{"windows", "system32"}

// file judges a path of kind path or drive: C:\x, \\?\C:\x, \x and x.
func (p *Powers) file(name Name) Reach {
	path := name.Canonical
	drive, rest, given := cutDrive(path)
	if name.Kind == KindDrive && rest == "" {
		return above(PowerDisk) // \\.\C: is the volume below its file system
	}
	absolute := rest != "" && isSeparator(rest[0])
	listed := slices.ContainsFunc(p.directories, func(d Directory) bool { return d.drive == drive })
	if path == "" || !listed && (given || !absolute) {
		return Reach{}
	}
	var space [16]string // deep enough for ordinary paths, so that the slice stays on the stack
	segs, odd := resolve(space[:0], flip(Fold(rest)))
	segs = withoutJunctions(segs)
	if listed {
		if odd == beyond || odd == outside && !absolute || unspeakable(path) { // where it leads is anyone's guess
			return above(PowerDirectory)
		}
		if at := p.find(drive, segs); at.Place != PlaceNone {
			return at
		}
		if !absolute && drive == 'c' {
			if at := p.find(drive, append(system32[:len(system32):len(system32)], segs...)); at.Place != PlaceNone {
				return at
			}
		}
	}
	if absolute && !given && isObject(segs) {
		return above(PowerDisk)
	}
	return Reach{}
}

// isObject finds disks in \device\x, \global??\x and \dosdevices\x, which are directories on C: to the kubelet. A runtime that is not
// asked by a kubelet may take them for names of the NT namespace.
func isObject(segs []string) bool {
	if len(segs) == 0 {
		return false
	}
	switch segs[0] {
	case "device", "global??", "dosdevices", "??":
		return len(segs) == 1 || len(segs[1]) == 1 || // all of them, or a drive, whose colon resolve has cut off
			isDisk(strings.Join(segs[1:], `\`))
	}
	return false
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
	plain   oddity = iota
	outside        // ".." led above the beginning
	beyond         // a segment is "..." or ".. ", a name to one layer and ".." to the next
)

// resolve appends the segments of folded text to segs as Windows reads them: without trailing dots and spaces and the names of
// streams, and with each ".." taking away the segment before it.
func resolve(segs []string, text string) ([]string, oddity) {
	odd := plain
	for raw := range strings.SplitSeq(text, `\`) {
		if raw == ".." {
			if len(segs) == 0 {
				odd = outside
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

// withoutJunctions follows the junctions that every Windows has in the root of its system drive and in the directory of users.
func withoutJunctions(segs []string) []string {
	if len(segs) > 0 && segs[0] == "documents and settings" {
		segs[0] = "users"
	}
	if len(segs) > 1 && segs[0] == "users" && segs[1] == "all users" {
		segs = segs[1:]
		segs[0] = "programdata"
	}
	return segs
}

// find returns the reach of segs on a drive: the nearest of the directories that hold them, or else the first that they hold.
func (p *Powers) find(drive byte, segs []string) (at Reach) {
	depth := -1
	for i := range p.directories {
		d := &p.directories[i]
		isAboveAll := p.everyRoot && len(segs) == 0
		if d.drive != drive || !isAboveAll && !d.related(segs) {
			continue
		}
		switch {
		case len(segs) < len(d.segs):
			if depth < 0 && at.Place == PlaceNone {
				at = Reach{PowerDirectory, PlaceAbove, d.written}
			}
		case len(d.segs) > depth:
			depth = len(d.segs)
			at = Reach{PowerDirectory, PlaceBeneath, d.written}
			if len(segs) == depth {
				at.Place = PlacePath
			}
		}
	}
	return at
}
