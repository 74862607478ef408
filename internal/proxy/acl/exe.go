package acl

import (
	"fmt"
	"strings"
	"unicode"
)

// exePattern is a folded path, and whether it stands for all that is beneath it.
type exePattern struct {
	path    string
	beneath bool
}

// image is the folded path of a caller's program; empty if there is none that can be compared.
type image string

func (p exePattern) any() bool { return p.path == "" }

func (p exePattern) covers(exe image) bool {
	if !p.beneath {
		return exe != "" && string(exe) == p.path
	}
	// path ends in a separator, so this is a comparison by segments.
	return len(exe) > len(p.path) && strings.HasPrefix(string(exe), p.path)
}

func parseExe(text string) (exePattern, error) {
	path, beneath := text, false
	for _, end := range []string{`\*`, `/*`} {
		if dir, ok := strings.CutSuffix(text, end); ok && sameSeparator(dir, end[0]) {
			path, beneath = dir, true
		}
	}
	folded := foldExe(path)
	if folded == "" {
		return exePattern{}, fmt.Errorf("exe %q: want the full path of a program (C:\\dir\\driver.exe), or C:\\dir\\* for all programs beneath a directory that is not the root of a drive", text)
	}
	if beneath {
		folded += image(separator(string(folded)))
	}
	return exePattern{string(folded), beneath}, nil
}

func sameSeparator(dir string, separator byte) bool {
	return strings.HasPrefix(dir, "/") == (separator == '/')
}

func separator(path string) string {
	if path[0] == '/' {
		return "/"
	}
	return `\`
}

// foldExe returns the one spelling by which a full path is compared, or "" for anything else: a relative path,
// a root, one with wildcards, empty, "." or ".." segments. Paths beginning with a slash keep their case.
func foldExe(path string) image {
	sep, rest := "/", path
	if !strings.HasPrefix(path, "/") {
		if len(path) < 3 || !isLetter(path[0]) || path[1] != ':' || path[2] != '\\' || strings.Contains(path, "/") {
			return ""
		}
		sep, rest = `\`, path[2:]
	}
	for _, segment := range strings.Split(rest[1:], sep) {
		if segment == "" || segment == "." || segment == ".." || strings.ContainsAny(segment, "*?\"<>|\x00") {
			return ""
		}
		if sep == `\` && strings.ContainsRune(segment, ':') { // a stream of a file is another program
			return ""
		}
	}
	if sep == "/" {
		return image(path)
	}
	return image(strings.Map(foldRune, path))
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// foldRune is the upper case of a character, as in the tables of NTFS. Those never turn a character beyond ASCII
// into one of ASCII, as Unicode does with the Kelvin sign, the long s and the dotless i.
func foldRune(r rune) rune {
	upper := unicode.ToUpper(r)
	if r > unicode.MaxASCII && upper <= unicode.MaxASCII {
		return r
	}
	return upper
}

// SameExe says whether two full paths name one program, by the comparison that rules use. What is no full path is the
// same as nothing.
func SameExe(a, b string) bool {
	folded := foldExe(a)
	return folded != "" && folded == foldExe(b)
}
