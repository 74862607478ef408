package access

import (
	"fmt"
	"strings"
)

// longestImage bounds the name of an image in bytes. Registries take names of 255 characters, and tags of 128.
const longestImage = 512

// digestSize is the length of "sha256:" and 64 hexadecimal digits.
const digestSize = 7 + 64

// IsImage accepts names of images as runtimes print them: words with single separators between them. Anything else is
// compared with nothing.
func IsImage(s string) bool {
	if len(s) > longestImage || strings.Contains(s, "//") || strings.Contains(s, "..") || strings.Count(s, "@") > 1 {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !isWord(c) && strings.IndexByte("./:@-", c) < 0 {
			return false
		}
	}
	if _, digest, ok := strings.Cut(s, "@"); ok && !isDigest(digest) {
		return false
	}
	return s != "" && isWord(s[0]) && isWord(s[len(s)-1])
}

func isDigest(s string) bool {
	hex, ok := strings.CutPrefix(s, "sha256:")
	if !ok || len(s) != digestSize {
		return false
	}
	for i := range len(hex) {
		if c := hex[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}

// ParseImage returns the pattern without its star; what remains of a prefix ends in a separator, and nothing else does.
func ParseImage(text string) (string, error) {
	prefix, isPrefix := strings.CutSuffix(text, "*")
	switch {
	case !isPrefix && IsImage(text):
		return text, nil
	case !isPrefix:
		return "", fmt.Errorf("image %q: want the name of an image, sha256: and 64 lower-case digits, or a prefix and * at the end", text)
	case !endsAtBoundary(prefix):
		return "", fmt.Errorf("image %q: the * must follow /, : or @, or within a tag . or -: team-a* would be team-ab too", text)
	case !IsImage(prefix[:len(prefix)-1]):
		return "", fmt.Errorf("image %q: want the beginning of an image's name before the *, which stands at the end alone", text)
	case !strings.Contains(prefix, "/"):
		return "", fmt.Errorf("image %q: a prefix needs the registry and a / after it: anybody may begin a name with less", text)
	}
	return prefix, nil
}

// endsAtBoundary says whether what follows a prefix is a part of the name of its own: a path, a tag, or a step of a version.
func endsAtBoundary(prefix string) bool {
	if prefix == "" {
		return false
	}
	switch prefix[len(prefix)-1] {
	case '/', '@':
		return true
	case ':': // of a tag; behind a registry it would be the port
		return strings.Contains(prefix, "/")
	case '.', '-':
		return strings.LastIndexByte(prefix, ':') > strings.LastIndexByte(prefix, '/')
	}
	return false
}

// IsImagePrefix says whether a pattern of ParseImage is the beginning of names.
func IsImagePrefix(pattern string) bool {
	return pattern != "" && !isWord(pattern[len(pattern)-1])
}

// CoversImage says whether a pattern of ParseImage means an image. It compares as text. A tag beside a digest says nothing, since runtimes go by the
// digest: so a name with a tag covers no name with a digest, and one with a digest covers it with whatever tag stands before it.
func CoversImage(pattern, image string) bool {
	if IsImagePrefix(pattern) {
		return len(image) > len(pattern) && strings.HasPrefix(image, pattern)
	}
	if pattern == image {
		return image != "" && !isDigest(image) // alone it is the name of a local image, or of one called sha256
	}
	digest, repository := ImageKeys(image)
	return pattern == digest && digest != "" || pattern == repository && repository != ""
}

// ImageKeys returns the other names by which a pattern may mean an image with a digest: the digest alone, and the image
// without its tag. Both are empty if there is no digest.
func ImageKeys(image string) (digest, untagged string) {
	at := strings.IndexByte(image, '@')
	if at < 0 {
		return "", ""
	}
	digest = image[at+1:]
	name := image[:at]
	if colon := strings.LastIndexByte(name, ':'); colon > strings.LastIndexByte(name, '/') {
		return digest, name[:colon] + image[at:]
	}
	return digest, image
}

// SpellImage puts an image of a PipePolicy into patterns of ParseImage. A beginning that ends within a name is the name itself, with any tag or digest, and
// what lies below it: registry.example/driver* is no registry.example/driver-of-others.
func SpellImage(text string) ([]string, error) {
	pattern, err := ParseImage(text)
	if err == nil {
		return []string{pattern}, nil
	}
	name, isPrefix := strings.CutSuffix(text, "*")
	if !isPrefix || !IsImage(name) || !strings.Contains(name, "/") {
		return nil, err
	}
	return []string{name, name + "/", name + ":", name + "@"}, nil
}

// EndsWithinName says of an image of a PipePolicy that SpellImage has more than one pattern for it. name is what stands before its star.
func EndsWithinName(text string) (name string, ok bool) {
	name, isPrefix := strings.CutSuffix(text, "*")
	return name, isPrefix && !endsAtBoundary(name)
}
