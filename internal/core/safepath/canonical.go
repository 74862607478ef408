package safepath

import "strings"

// Canonical returns the one spelling of an absolute Windows path as far as separators go: X:\ and then a single \ between
// segments and none at the end. It removes separators and nothing else. Win32 does the same to such a path before
// it looks at the segments, so that both spellings name one file; csi-proxy took both.
//
// Every other text comes back as it is, for [Split] to refuse: one that begins with a separator (there, two of them begin a
// UNC or device path), that has no drive, or that is longer than [MaxLength] as it was written.
func Canonical(path string) string {
	if len(path) > MaxLength || !isAbsolute(path) || !strings.Contains(path[2:], `\\`) && !strings.HasSuffix(path[2:], `\`) {
		return path
	}
	var b strings.Builder
	b.Grow(len(path))
	b.WriteString(path[:2])
	for segment := range strings.SplitSeq(path[3:], `\`) {
		if segment != "" {
			b.WriteByte('\\')
			b.WriteString(segment)
		}
	}
	if b.Len() == 2 { // the drive itself
		b.WriteByte('\\')
	}
	return b.String()
}
