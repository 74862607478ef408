package query

import (
	"cmp"
	"regexp"
	"strings"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/core/pipepath"
)

// leadsTo says whether a target is path or lies below it, as it was written or as it was understood.
func leadsTo(t audit.Target, path string) bool {
	return below(t.Value, path) || t.Canonical != "" && below(t.Canonical, path)
}

// named says whether requests have a target. What a record had no room for may be one, and so may what was refused before it was read.
func named(e *audit.Event, is, mayBe func(audit.Target) bool) fit {
	var w audit.What
	if e.What != nil {
		w = *e.What
	}
	hasMore, count := w.MoreTargets > 0 || e.IsUnread(), 0
	for _, t := range w.Targets {
		switch {
		case t.Kind == "cut":
			hasMore = true
		case is(t):
			count++
		case mayBe != nil && mayBe(t):
			hasMore = true
		case hasCutEnd(t.Value) && (t.Canonical == "" || hasCutEnd(t.Canonical)): // what is gone may have led anywhere
			hasMore = true
		}
	}
	switch {
	case count > 0 && (e.Count() == 1 || !hasMore && count == len(w.Targets)): // refusals with targets and without are not in one summary
		return all
	case count > 0:
		return some
	case hasMore:
		return may
	}
	return none
}

// isAbsolute says whether a path begins at a drive, a share or the root, so that what is recorded as a path can lie below it.
func isAbsolute(path string) bool {
	path = plain(path)
	isDrive := len(path) >= 2 && path[0] >= 'a' && path[0] <= 'z' && path[1] == ':' && (len(path) == 2 || path[2] == '\\')
	return (isDrive || strings.HasPrefix(path, `\`)) && !strings.Contains(path, "*")
}

// below says whether path is directory or lies in it, as they stand or by another spelling of them. Too much is found rather than too little:
// a request that was refused for the spelling of its path has no canonical one beside it.
// A name that only begins alike is another: C:\kubelet-evil does not lie in C:\kubelet.
func below(path, directory string) bool {
	known, isOpen := path, false
	if i := openEnd(path); i >= 0 {
		known, isOpen = path[:i], true
		if strings.HasPrefix(folded(directory), folded(known)) || strings.Contains(path[i:], "..") {
			return true
		}
	}
	if under(plain(path), plain(directory)) || under(folded(known), folded(directory)) {
		return true
	}
	names, ok := withoutDrive(known)
	below, hasDrive := cutDrive(folded(directory))
	names = folded(`\` + names)
	return ok && hasDrive && (under(names, below) || isOpen && strings.HasPrefix(below, names))
}

// openEnd is where the part of a path begins of which it is not known what it names: what a record had no room for, a variable of a subPathExpr, or a name in
// the short form that Windows makes of longer ones. It is negative if there is none.
func openEnd(path string) int {
	end := -1
	if hasCutEnd(path) {
		end = strings.LastIndexByte(path, '[')
	}
	if i := strings.Index(path, "$("); i >= 0 && (end < 0 || i < end) {
		end = i
	}
	if !strings.Contains(path, "~") { // spares most paths the pattern
		return end
	}
	if m := shortName.FindStringIndex(path); m != nil && (end < 0 || m[0] < end) {
		end = m[0]
	}
	return end
}

// shortName is a name such as PROGRA~1, of which the beginning need not be that of the longer name.
var shortName = regexp.MustCompile(`[^\\/:~]{1,7}~[0-9]`)

// elsewhere begins what leads to a drive by another name than its letter: the share that administrators have of it, a volume, or its device.
var elsewhere = regexp.MustCompile(`^(?:\\\\[^\\]+\\[a-z]\$|\\\\\.\\(?:volume\{[^}\\]*\}|harddiskvolume[0-9]+|bootpartition)|\\device\\harddiskvolume[0-9]+)(?:\\|$)`)

// anywhere begins what leads to a directory that has another name on each machine: that of Windows, as a share and in the namespace of NT, and what devices
// link to.
var anywhere = regexp.MustCompile(`^(?:\\\\[^\\]+\\admin\$|\\systemroot|\\arcname|\\device)(?:\\|$)`)

// nameless are kinds of targets that name no path.
var nameless = map[string]bool{"disk": true, "disk-name": true, "portal": true, "service": true, "target": true, "volume": true}

// mayLie says whether a target may lie in a directory for all that is known of it: of a share, what was asked for below it is not a part of the target; a relative path begins
// where a process happens to be; a device may lead to any directory, and holds all of a volume where no name stands behind it.
func mayLie(t audit.Target, directory string) bool {
	if nameless[t.Kind] {
		return false
	}
	written := cmp.Or(t.Canonical, t.Value)
	path, place := inOneForm(written), folded(directory)
	_, isOnDrive := cutDrive(place)
	volume := elsewhere.FindString(path)
	if t.Kind == "share" && under(place, path) {
		return true
	}
	isRoot := strings.HasSuffix(strings.ReplaceAll(written, "/", `\`), `\`)
	isWhole := volume == path && volume != "" && !isRoot
	switch name := pipepath.Canonical(written); name.Kind {
	case pipepath.KindMalformed, pipepath.KindMalformedDotdot:
		return true
	case pipepath.KindDOSDevice, pipepath.KindNTDevice, pipepath.KindNTOther:
		return isOnDrive && (volume == "" || isWhole)
	case pipepath.KindDrive:
		return len(path) == len("c:") && !isRoot && strings.HasPrefix(place, path)
	case pipepath.KindUNC, pipepath.KindPath:
		isOpen := isWhole || path != "" && !strings.HasPrefix(path, `\`) || volume == "" && anywhere.MatchString(path)
		if rest, hasDrive := cutDrive(path); hasDrive {
			isOpen = !strings.HasPrefix(rest, `\`) && strings.HasPrefix(place, path[:len("c:")])
		}
		return isOnDrive && isOpen
	}
	return false
}

// inOneForm is the canonical name of a path that begins at a share or a device, and otherwise the path as it stands, but for its case and its separators.
func inOneForm(path string) string {
	switch name := pipepath.Canonical(path); name.Kind {
	case pipepath.KindUNC, pipepath.KindDrive, pipepath.KindDOSDevice, pipepath.KindNTDevice, pipepath.KindNTOther:
		return name.Canonical
	}
	return strings.ToLower(strings.ReplaceAll(path, "/", `\`))
}

// withoutDrive returns what stands behind the drive of a path that leaves open which directory, or which drive, it begins at: C:x, \x and names of drives
// that have no letter.
func withoutDrive(path string) (names string, ok bool) {
	path = inOneForm(path)
	if drive := elsewhere.FindString(path); drive != "" {
		return path[len(drive):], true
	}
	if rest, hasDrive := cutDrive(path); hasDrive {
		return rest, rest != "" && !strings.HasPrefix(rest, `\`)
	}
	names, ok = strings.CutPrefix(path, `\`)
	return names, ok && !strings.HasPrefix(names, `\`)
}

func cutDrive(path string) (rest string, ok bool) {
	if len(path) < 2 || path[1] != ':' {
		return path, false
	}
	return path[2:], true
}

// hasCutEnd says whether a record had no room for the end of a text.
func hasCutEnd(text string) bool {
	return strings.HasSuffix(text, " bytes cut]") && strings.Contains(text, "[")
}

func under(path, directory string) bool {
	return path == directory || strings.HasPrefix(path, strings.TrimSuffix(directory, `\`)+`\`)
}

// drive is where a path goes on at a drive, as NT's names of one do that is a logon session's: \Sessions\0\DosDevices\0\C:.
var drive = regexp.MustCompile(`(?:^|\\)([a-z]:)`)

// plain is the path as pipepath reads it, if that says which drive or share it leads to, and otherwise as it stands, from its drive on, with one kind of
// separators; case does not matter.
func plain(path string) string {
	switch name := pipepath.Canonical(path); name.Kind {
	case pipepath.KindDrive, pipepath.KindUNC, pipepath.KindUNCHost:
		path = name.Canonical
	default:
		path = strings.ToLower(strings.ReplaceAll(path, "/", `\`))
		if m := drive.FindStringSubmatchIndex(path); m != nil {
			path = path[m[2]:]
		}
	}
	if trimmed := strings.TrimRight(path, `\`); trimmed != "" && !strings.HasSuffix(trimmed, ":") {
		return trimmed
	}
	return path
}

// folded leaves out, beside that, what Windows does not look at: empty names, dots and blanks at the ends of names, and names that are
// gone back from.
func folded(path string) string {
	path = plain(path)
	names := strings.TrimLeft(path, `\`)
	root := path[:len(path)-len(names)]
	var kept []string
	for name := range strings.SplitSeq(names, `\`) {
		last := len(kept) - 1
		if i := strings.IndexByte(name, ':'); i > 1 { // the name of a stream
			name = name[:i]
		}
		switch trimmed := strings.TrimRight(name, ". "); {
		case name == ".." && last >= 0 && !strings.HasSuffix(kept[last], ":"):
			kept = kept[:last]
		case trimmed != "":
			kept = append(kept, trimmed)
		}
	}
	if len(kept) == 1 && strings.HasSuffix(kept[0], ":") && kept[0] != names {
		kept = append(kept, "") // the root of a drive; without a separator it is where a process happens to be
	}
	return root + strings.Join(kept, `\`)
}
