package safepath

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// isDevice reports whether Win32 takes s for a device in any directory. An extension and spaces before it
// change nothing: "nul .txt" is NUL.
func isDevice(s string) bool {
	name, _, _ := strings.Cut(s, ".")
	name = strings.TrimRight(name, " ")
	if len(name) < 3 || len(name) > len("CLOC\u212a$") || strings.IndexByte("capnlCAPNL", name[0]) < 0 {
		return false // most names end here, without a copy
	}
	name = strings.ToUpper(name)
	switch name {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$", "CLOCK$":
		return true
	}
	if len(name) < 4 || (name[:3] != "COM" && name[:3] != "LPT") {
		return false
	}
	// 0 to 9, and ¹ ² ³, which the Windows code page counts as digits. Which others it counts
	// is not documented, so every number is one.
	digit, size := utf8.DecodeRuneInString(name[3:])
	return len(name) == 3+size && unicode.IsNumber(digit)
}

// isShortName reports whether s has the form that NTFS generates for long names (8.3): up to eight characters
// that end in ~ and digits, then at most one extension of up to three.
func isShortName(s string) bool {
	name, ext, _ := strings.Cut(s, ".")
	tilde := strings.LastIndexByte(name, '~')
	if tilde < 0 || tilde == len(name)-1 || utf8.RuneCountInString(name) > 8 ||
		utf8.RuneCountInString(ext) > 3 || strings.Contains(ext, ".") {
		return false
	}
	return strings.Trim(name[tilde+1:], "0123456789") == ""
}
