package pipepath

import "strings"

// Fold returns s as Windows object names are compared: lower-cased after upper-casing.
// The detour over upper case merges the letters whose upper case is a plain one, U+0131 and U+017F,
// and lower-casing merges U+212A; Windows itself may keep them apart, which makes Fold the wider net.
// Bytes that are not UTF-8 become U+FFFD. Fold(Fold(s)) = Fold(s).
func Fold(s string) string {
	ascii, upper := true, false
	for i := 0; i < len(s); i++ {
		ascii = ascii && s[i] < 0x80
		upper = upper || 'A' <= s[i] && s[i] <= 'Z'
	}
	switch {
	case !ascii:
		return strings.ToLower(strings.ToUpper(s))
	case upper:
		return strings.ToLower(s)
	}
	return s
}

// maxScheme bounds the bytes in which a scheme is looked for: the longest, "sandbox:",
// in letters of three bytes each.
const maxScheme = 3*len("sandbox") + 1

// cutScheme removes a container runtime's scheme and all separators behind it.
//
//	npipe: moby's volume syntax; uvm: and sandbox: hcsshim's mounts from inside a utility VM
func cutScheme(path string) (rest string, found bool) {
	i := strings.IndexByte(path[:min(len(path), maxScheme)], ':')
	if i < len("uvm") {
		return path, false
	}
	switch Fold(path[:i]) {
	case "npipe", "uvm", "sandbox":
		return strings.TrimLeft(path[i+1:], `\/`), true
	}
	return path, false
}

// flip turns every / into \.
func flip(s string) string {
	if strings.IndexByte(s, '/') < 0 {
		return s
	}
	return strings.ReplaceAll(s, "/", `\`)
}

func isSeparator(c byte) bool { return c == '\\' || c == '/' }
