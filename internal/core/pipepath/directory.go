package pipepath

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxDirectory bounds a listed directory in bytes, as the API bounds the paths of nodes.
const maxDirectory = 1024

// Directory is a directory on a drive of Windows, as it is listed. Without segments it is the root of its drive.
type Directory struct {
	written string
	drive   byte // lower case
	segs    []string
}

// ParseDirectory takes an absolute path with its drive (C:\Windows) in one plain spelling, with separators and case as one likes. Of C:\PROGRA~1 it cannot be told which
// directory it is, and devices are judged without a list. The error names the path and its fault.
func ParseDirectory(s string) (Directory, error) {
	d, fault := parseDirectory(s)
	if fault != "" {
		return Directory{}, fmt.Errorf("path %.300q %s", s, fault)
	}
	return d, nil
}

func parseDirectory(s string) (d Directory, fault string) {
	d.written = s
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
	d.segs = withoutJunctions(d.segs)
	return d, ""
}

// MountedDirectory is the directory of a volume with this path: for certain, and with whatever of it a mount with subPath shows. ok is false for a path that is relative, or in a
// spelling of which it cannot be told where it leads, and for a subPath that may lead out of it. The kubelet takes a path that begins with one slash for one on drive C:.
func MountedDirectory(hostPath, subPath string) (d Directory, ok bool) {
	path := hostPath
	if path != "" && isSeparator(path[0]) && (len(path) == 1 || !isSeparator(path[1])) {
		path = "C:" + path
	}
	joined := joinSubPath(path, subPath)
	d, fault := parseDirectory(path)
	if _, below := parseDirectory(joined); fault != "" || below != "" || !isASCII(joined) {
		return Directory{}, false
	}
	return d, true
}

// isASCII says that no letter of s has another case than in ASCII.
func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

// Holds says whether o is the directory or in it.
func (d Directory) Holds(o Directory) bool {
	return d.drive == o.drive && len(d.segs) <= len(o.segs) && slices.Equal(d.segs, o.segs[:len(d.segs)])
}

// related reports whether segs on the drive are the directory, below it, or above it, or may be. Above all is the root, which counts only if it is listed itself.
func (d *Directory) related(segs []string) bool {
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

// Parts are the letter of the drive and the names of the directories below its root, in lower case and with the usual junctions followed.
func (d Directory) Parts() (drive byte, names []string) { return d.drive, slices.Clone(d.segs) }
