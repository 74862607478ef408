package floor

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pipeguard/pipeguard/internal/core/pipepath"
)

// Regular expressions (RE2) of paths. A canonical form cannot be made in CEL, so these describe the spellings of which it is certain what they name, and all others
// are doors. They hold ASCII alone: other letters have a case that only the system knows.
const (
	// plainPath is a path on a drive, or from its root, that begins with an ordinary name.
	plainPath = `^([A-Za-z]:|[/\\]\.?[0-9A-Za-z_])[ ->@-~]*$`
	// twoDots are two dots with nothing but blanks between them: ".." to one layer or another.
	twoDots = `\. *\.`
	// device is a path from the root that a runtime may take for a name of the NT namespace.
	device = `(?i)^[/\\]\.?(device|dosdevices|sessions|silos)[. ]*([/\\]|$)`
	// root is the root of the system drive, of which it depends on the subPath where a mount leads.
	root = `^[/\\]$`
	// plainPipe is the spelling in which a pipe can be permitted.
	plainPipe = `^[/\\][/\\]\.[/\\][Pp][Ii][Pp][Ee][/\\][0-9A-Za-z_.{}-]*[0-9A-Za-z_{}-]$`
	// beforeName is how many characters of plainPipe stand before the pipe's name.
	beforeName = len(`\\.\pipe\`)
	// plainSubPath is a subPath that stays within what it is put behind.
	plainSubPath = `^[ -.0->@-\[\]-~][ ->@-~]*$`

	// fileName is a name that Windows changes nothing of and that is no short name. It has no apostrophe, which no literal of a pattern could hold.
	fileName = `[ !#-&()+-.0-9;=@-\[\]-{}]*[!#-&()+,0-9;=@-\[\]-{}-]`
	// certainPath is a path of which it is certain which directory it is, certainSubPath one within another.
	certainPath    = `^([A-Za-z]:)?[/\\]+(` + fileName + `([/\\]+` + fileName + `)*[/\\]*)?$`
	certainSubPath = `^` + fileName + `([/\\]+` + fileName + `)*[/\\]*$`
)

// isPlain says that a path leads to no pipe, with any plain subPath.
func isPlain(path string) string {
	return fmt.Sprintf("(%[1]s.size() <= %[2]d && %[1]s.matches(%[3]s) && !%[1]s.matches(%[4]s) && !%[1]s.matches(%[5]s))",
		path, longestPath, pattern(plainPath), pattern(twoDots), pattern(device))
}

// isRoot says that a path is the root of the system drive.
func isRoot(path string) string { return fmt.Sprintf("%s.matches(%s)", path, pattern(root)) }

// pipeName is the name of the pipe, in lower case, that a path spells plainly, and empty of any other path. The names of directories of pipes are none of a pipe.
func pipeName(path string) string {
	return fmt.Sprintf("(%[1]s.size() <= %[2]d && %[1]s.matches(%[3]s) && !(%[1]s.lowerAscii().substring(%[4]d) in ['local', %[5]s]) ? %[1]s.lowerAscii().substring(%[4]d) : '')",
		path, longestPath, pattern(plainPipe), beforeName, quote(pipepath.ProtectedPrefix))
}

// directories are those of the host that are guarded, as regular expressions.
type directories struct {
	related string // of a normal path that is one of them, below one or above one; empty if there are none
}

// areUnreachedBy says that a path is certainly none of the directories, and has nothing to do with one.
func (d directories) areUnreachedBy(path string) string {
	return fmt.Sprintf("(%s.matches(%s) && !%s.matches(%s))", path, pattern(certainPath), normal(path), pattern(d.related))
}

// normal is a path with its drive, in lower case and with slashes.
func normal(path string) string {
	return fmt.Sprintf(`((%[1]s.startsWith('/') || %[1]s.startsWith('\\') ? 'c:' : '') + %[1]s.lowerAscii().replace('\\', '/'))`, path)
}

// guardedDirectories parses lists of directories. Above all of a drive is its root.
func guardedDirectories(lists ...[]string) (directories, error) {
	within, above := map[byte][]string{}, map[byte][]string{}
	for _, path := range slices.Concat(lists...) {
		d, err := pipepath.ParseDirectory(path)
		if err != nil {
			return directories{}, fmt.Errorf("guarded directory: %w", err)
		}
		drive, names := d.Parts()
		if _, ok := within[drive]; !ok {
			within[drive] = nil // the root of the drive is above it, whatever else is
		}
		for _, names := range aliases(names) {
			parents, whole := expressible(names)
			for i := 1; i <= len(parents); i++ {
				if i == len(names) && whole {
					within[drive] = append(within[drive], namesPattern(parents))
					break
				}
				above[drive] = append(above[drive], namesPattern(parents[:i]))
			}
		}
	}
	var drives []string
	for drive := range within {
		drives = append(drives, fmt.Sprintf("%c:/+(%s)", drive, strings.Join(slices.DeleteFunc([]string{
			alternatives(within[drive], "(/|$)"), alternatives(above[drive], "/*$"), "$",
		}, func(s string) bool { return s == "" }), "|")))
	}
	if len(drives) == 0 {
		return directories{}, nil
	}
	slices.Sort(drives)
	return directories{related: "^(" + strings.Join(drives, "|") + ")"}, nil
}

func alternatives(patterns []string, end string) string {
	if len(patterns) == 0 {
		return ""
	}
	slices.Sort(patterns)
	return "(" + strings.Join(slices.Compact(patterns), "|") + ")" + end
}

// namesPattern is a regular expression of a path below the root of a drive.
func namesPattern(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = regexp.QuoteMeta(name)
	}
	return strings.Join(quoted, "/+")
}

// aliases are the names of a directory, and those by the junctions that pipepath follows.
func aliases(names []string) [][]string {
	out := [][]string{names}
	behind := func(alias ...string) { out = append(out, append(alias, names[1:]...)) }
	if len(names) == 0 {
		return out
	}
	switch names[0] {
	case "users":
		behind("documents and settings")
	case "programdata":
		behind("users", "all users")
		behind("documents and settings", "all users")
	}
	return out
}

var certainName = regexp.MustCompile(`^` + fileName + `$`)

// expressible are the names before the first that no certain path has, and whether that is all of them.
func expressible(names []string) (before []string, whole bool) {
	for i, name := range names {
		if !certainName.MatchString(name) {
			return names[:i], false
		}
	}
	return names, true
}

// withinPattern is a regular expression of a normal path that is one of the directories or below one; empty if there are none.
func withinPattern(paths []string) string {
	var all []string
	for _, path := range paths {
		d, err := pipepath.ParseDirectory(path)
		if err != nil { // it holds nothing
			continue
		}
		drive, names := d.Parts()
		if _, whole := expressible(names); !whole {
			continue
		}
		if len(names) == 0 {
			all = append(all, string(drive)+":/")
			continue
		}
		all = append(all, string(drive)+":/+"+namesPattern(names)+"(/|$)")
	}
	if len(all) == 0 {
		return ""
	}
	return "^(" + strings.Join(all, "|") + ")"
}
