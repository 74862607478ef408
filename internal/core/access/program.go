package access

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// coversExe compares with a folded path, or with a directory, which ends in its separator and stands for what is beneath it.
func coversExe(pattern, exe string) bool {
	if !isExeDir(pattern) {
		return exe != "" && exe == pattern
	}
	return len(exe) > len(pattern) && strings.HasPrefix(exe, pattern)
}

func isExeDir(pattern string) bool {
	return pattern != "" && (pattern[len(pattern)-1] == '\\' || pattern[len(pattern)-1] == '/')
}

// ParseExe takes the full path of a program, or a directory and a separator with a star, which stands for all programs beneath it. It returns the one spelling by
// which programs are compared, of a directory with a separator at the end.
func ParseExe(text string) (string, error) {
	path, beneath := text, false
	for _, end := range []string{`\*`, `/*`} {
		if dir, ok := strings.CutSuffix(text, end); ok && sameSeparator(dir, end[0]) {
			path, beneath = dir, true
		}
	}
	folded := foldExe(path)
	if folded == "" {
		return "", fmt.Errorf("exe %q: want the full path of a program (C:\\dir\\driver.exe), or C:\\dir\\* for all programs beneath a directory that is not the root of a drive", text)
	}
	if beneath {
		folded += separator(folded)
	}
	return folded, nil
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
func foldExe(path string) string {
	if strings.HasPrefix(path, "/") {
		if !hasOnlySegments(path[1:], '/') {
			return ""
		}
		return path
	}
	if len(path) < 3 || !isLetter(path[0]) || path[1] != ':' || path[2] != '\\' || !hasOnlySegments(path[3:], '\\') {
		return ""
	}
	return UpperCase(path)
}

// hasOnlySegments says whether a path is names with one separator between them. It is asked about every caller, so it looks
// at each byte once.
func hasOnlySegments(path string, separator byte) bool {
	start := 0
	for i := 0; i <= len(path); i++ {
		if i == len(path) || path[i] == separator {
			if name := path[start:i]; name == "" || name == "." || name == ".." {
				return false
			}
			start = i + 1
			continue
		}
		switch path[i] {
		case '*', '?', '"', '<', '>', '|', 0:
			return false
		case ':', '/': // on Windows a stream of a file, which is another program, and a second separator
			if separator == '\\' {
				return false
			}
		}
	}
	return true
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// UpperCase is the upper case of ASCII, byte by byte, and of other letters as foldRune has it.
func UpperCase(path string) string {
	var out strings.Builder
	out.Grow(len(path))
	for i := range len(path) {
		c := path[i]
		if c >= utf8.RuneSelf {
			return strings.Map(foldRune, path)
		}
		if 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		}
		out.WriteByte(c)
	}
	return out.String()
}

// foldRune is the upper case of a Latin, Greek, Cyrillic or Armenian letter whose lower case is that letter again. So none beyond ASCII turns into one of ASCII,
// as Unicode has it with the Kelvin sign, the long s and the dotless i, and none into that of another letter, as the micro sign into that of mu. Other letters
// are compared as they are: Windows keeps the cases of many apart.
func foldRune(r rune) rune {
	const lastArmenian = 0x58f
	upper := unicode.ToUpper(r)
	if unicode.ToLower(upper) != r || r > unicode.MaxASCII && upper <= unicode.MaxASCII || max(r, upper) > lastArmenian {
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
