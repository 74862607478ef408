package segment

import (
	"cmp"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Names of the files beside the segments of a log.
const (
	// CheckpointFile holds the signed state of the log.
	CheckpointFile = "checkpoints"
	// StartFile holds the tree of the records that were pruned: without it the tree of those that are left cannot be known.
	StartFile = "start"
	// lockName is the file that the writer keeps locked. It holds nothing and stays.
	lockName = "lock"
)

// Entry is a segment in a directory.
type Entry struct {
	Path  string
	Given string // the name that its writer gave it: without what says that it is packed
	First uint64 // number of its first record, from the name
}

// EntryOf reads the name of a segment. A file whose writer did not name it so is not read as a part of a log.
func EntryOf(path string) (e Entry, isSegment bool) {
	given, first, isSegment := ParseCopy(filepath.Base(path))
	return Entry{path, given, first}, isSegment
}

// Stray is an entry of a directory that is not part of the log and is not read.
type Stray struct {
	Path string
	Why  string
	Kind StrayKind
}

// StrayKind says what a stray may be mistaken for.
type StrayKind int

// Kinds of strays.
const (
	// StrayForeign is not a file of a log.
	StrayForeign StrayKind = iota
	// StrayClaim has the name of a segment, or one that is close to it: other programs take it for a part of the log.
	StrayClaim
	// StrayLeft is new contents of a file of the log, which a process leaves if it is killed while it writes them. An attacker can make one too.
	StrayLeft
	// StrayRoom is an empty StrayLeft: a process that writes a log keeps one.
	StrayRoom
	// StrayMute is a segment that holds something, and in which no record counts though none of the log says so: what it holds may be of the log.
	StrayMute
	// StrayHolding holds records that may be of the log, or may do so: a segment by another name, or one that another segment declares void though it holds
	// more than a start that was killed leaves.
	StrayHolding
)

// List returns the segments of a log by the numbers in their names, and all other entries of its directory but the files that belong beside
// segments. Every reader of a directory begins with this list, so that all readers read the same files.
func List(dir string) (segments []Entry, strays []Stray, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		segment, isSegment := EntryOf(path)
		switch {
		case isSegment && e.Type().IsRegular():
			segments = append(segments, segment)
		case isSegment:
			strays = append(strays, Stray{path, "it has the name of a segment, but is not a regular file", StrayClaim})
		case isCompanion(e.Name()) && !e.Type().IsRegular():
			strays = append(strays, Stray{path, "it has the name of a file that belongs beside segments, but is not a regular file", StrayHolding})
		case claims(e.Name()):
			strays = append(strays, Stray{path, "its name resembles that of a segment, but no writer makes such a name", StrayClaim})
		case holdsRecord(path, e):
			strays = append(strays, Stray{path, "it begins with a record, but does not have the name of a segment", StrayHolding})
		case e.Name() == lockName && !isEmpty(e):
			strays = append(strays, Stray{path, "the lock of a writer is an empty file, and this one is not", StrayForeign})
		case isCompanion(e.Name()):
		case isLeft(e) && isEmpty(e):
			strays = append(strays, Stray{path, "it is room for new contents of a file beside the segments, and holds nothing", StrayRoom})
		case isLeft(e):
			strays = append(strays, Stray{path, "it was being written when a process ended, or looks like that", StrayLeft})
		default:
			strays = append(strays, Stray{path, "it is not a file of an audit log", StrayForeign})
		}
	}
	SortByNumber(segments, func(e Entry) (uint64, string) { return e.First, e.Path })
	return segments, strays, nil
}

// isEmpty says whether an entry is a file that holds nothing.
func isEmpty(e os.DirEntry) bool {
	info, err := e.Info()
	return err == nil && info.Mode().IsRegular() && info.Size() == 0
}

// holdsRecord says whether an entry begins as a record does: a segment by another name.
func holdsRecord(path string, e os.DirEntry) bool {
	if !e.Type().IsRegular() {
		return false
	}
	f, _, err := OpenRegular(path)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // only read
	var start [len(recordStart)]byte
	_, err = io.ReadFull(f, start[:])
	return err == nil && string(start[:]) == recordStart
}

// claims says whether a name is one that people and shippers, which look for audit-*, take for a segment's. Windows does not look at case.
func claims(name string) bool { return strings.HasPrefix(strings.ToLower(name), "audit-") }

// isCompanion says whether a name is one of the files that belong beside segments.
func isCompanion(name string) bool {
	return name == CheckpointFile || name == StartFile || name == lockName
}

// leftPattern matches the names that atomicfile.Create gives.
var leftPattern = regexp.MustCompile(`^\.(` + CheckpointFile + `|` + StartFile + `)-[0-9]{1,20}$`)

// isLeft says whether an entry may be what is left of a new content.
func isLeft(e os.DirEntry) bool { return e.Type().IsRegular() && leftPattern.MatchString(e.Name()) }

// IsDue says whether a segment that holds nothing may be the next one of a log whose last record is known: its number is the next, or the one
// behind a LogClose that is not written yet.
func IsDue(first, last uint64) bool { return first == last+1 || first == last+2 }

// declares says whether what the segment says of another one can be heeded: it begins as one of the log does.
func (l Link) declares(other Link) bool {
	return l.IsWhole && l.Opens && l.Given != other.Given
}

// Counts says for each segment whether its records count. Those of a segment without a whole first line do not: a write failed, or has just
// begun. Nor do those of a segment that was given up: one that counts declares it void, and took its place, so that both begin with the same
// number and none follows on it, or nothing was written in it that a segment begins with. A declaration about any other segment is not heeded: no
// file makes records of the log disappear.
func Counts(links []Link) []bool {
	by := map[string][]Link{} // the segments that declare one void
	isFollowed := map[string]bool{}
	for _, d := range links {
		for _, name := range d.Void {
			by[name] = append(by[name], d)
		}
		isFollowed[d.Previous] = isFollowed[d.Previous] || d.IsWhole && d.Opens
	}
	isVoid := func(l Link, takesPlace func(d Link) bool) bool {
		return slices.ContainsFunc(by[l.Given], func(d Link) bool { return d.declares(l) && takesPlace(d) })
	}
	out := make([]bool, len(links))
	for i, l := range links {
		out[i] = l.IsWhole && !isVoid(l, func(d Link) bool {
			if l.Opens && (d.First != l.First || isFollowed[l.Given]) {
				return false
			}
			return !isVoid(d, func(other Link) bool { return other.First == d.First })
		})
	}
	return out
}

// SortByNumber sorts segments by their first numbers, and by name where these are the same.
func SortByNumber[S any](list []S, key func(S) (uint64, string)) {
	slices.SortFunc(list, func(a, b S) int {
		m, s := key(a)
		n, t := key(b)
		return cmp.Or(cmp.Compare(m, n), cmp.Compare(s, t))
	})
}
