package access

import (
	"fmt"
	"strings"
)

// longestImage and longestTag bound names of images in bytes. Registries take names of 255 characters.
const (
	longestImage = 512
	longestTag   = 128
)

// digestSize is the length of "sha256:" and 64 hexadecimal digits.
const digestSize = 7 + 64

// IsImage accepts names of images as runtimes print them: words with single separators between them, of which the first may have a port and the last a tag.
// Anything else is compared with nothing.
func IsImage(s string) bool {
	if s == "" || len(s) > longestImage || strings.Contains(s, "//") || strings.Contains(s, "..") {
		return false
	}
	name, digest, hasDigest := strings.Cut(s, "@")
	for i := range len(name) {
		if c := name[i]; !isWord(c) && strings.IndexByte("./:-", c) < 0 {
			return false
		}
	}
	repository, tag, hasTag := cutTag(name)
	registry, path, hasPath := strings.Cut(repository, "/")
	_, port, hasPort := strings.Cut(registry, ":")
	switch {
	case hasDigest && !isDigest(digest),
		hasTag && (tag == "" || len(tag) > longestTag || !isWord(tag[0])),
		hasPort && (!hasPath || port == "" || strings.Trim(port, "0123456789") != ""),
		repository == "" || strings.Contains(path, ":"):
		return false
	}
	return isWord(s[0]) && isWord(repository[len(repository)-1]) && isWord(s[len(s)-1])
}

// cutTag takes the tag from the name of an image without its digest. A colon before a slash is a registry's port.
func cutTag(name string) (repository, tag string, hasTag bool) {
	colon := strings.LastIndexByte(name, ':')
	if colon <= strings.LastIndexByte(name, '/') {
		return name, "", false
	}
	return name[:colon], name[colon+1:], true
}

func isDigest(s string) bool {
	hex, ok := strings.CutPrefix(s, "sha256:")
	return ok && len(s) == digestSize && strings.Trim(hex, "0123456789abcdef") == ""
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
	case goesOnBehindTag(prefix):
		return "", fmt.Errorf("image %q: nothing that a runtime goes by stands behind a tag: write name@* or name@sha256:…, without the tag", text)
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
		return RestrictsTag(prefix)
	}
	return false
}

// RestrictsTag says whether a prefix that ends in a separator is the beginning of some tags of a name.
func RestrictsTag(prefix string) bool {
	_, tag, _ := cutTag(prefix)
	return tag != ""
}

// goesOnBehindTag says whether a prefix that is the beginning of a name has a whole tag or a digest before its last separator.
func goesOnBehindTag(prefix string) bool {
	name, last := prefix[:len(prefix)-1], prefix[len(prefix)-1]
	return strings.Contains(name, "@") || last != '.' && last != '-' && strings.Contains(name, "/") && RestrictsTag(name)
}

// IsImagePrefix says whether a pattern of ParseImage is the beginning of names.
func IsImagePrefix(pattern string) bool {
	return pattern != "" && !isWord(pattern[len(pattern)-1])
}

// CoversImage says whether a pattern of ParseImage means an image. It compares as text. A tag beside a digest says nothing, since runtimes go by the
// digest: so neither a name with a tag nor the beginning of one covers a name with a digest, and one with a digest covers it with whatever tag stands before it.
func CoversImage(pattern, image string) bool {
	if IsImagePrefix(pattern) {
		return len(image) > len(pattern) && strings.HasPrefix(image, pattern) && (!RestrictsTag(pattern) || !strings.Contains(image, "@"))
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
	name, digest, ok := strings.Cut(image, "@")
	if !ok {
		return "", ""
	}
	repository, _, _ := cutTag(name)
	return digest, repository + "@" + digest
}

// SpellImage puts an image of a PipePolicy into patterns of ParseImage. A beginning that ends within a name is the name itself, with any tag or digest if it has
// none, and what lies below it: registry.example/driver* is no registry.example/driver-of-others.
func SpellImage(text string) ([]string, error) {
	pattern, err := ParseImage(text)
	if err == nil {
		return []string{pattern}, nil
	}
	name, isPrefix := strings.CutSuffix(text, "*")
	if !isPrefix || !IsImage(name) || !strings.Contains(name, "/") {
		return nil, err
	}
	if _, _, hasTag := cutTag(name); hasTag {
		return []string{name}, nil // nothing stands behind a tag or a digest
	}
	return []string{name, name + "/", name + ":", name + "@"}, nil
}

// EndsWithinName says of an image of a PipePolicy that SpellImage has more than one pattern for it. name is what stands before its star.
func EndsWithinName(text string) (name string, ok bool) {
	name, isPrefix := strings.CutSuffix(text, "*")
	return name, isPrefix && !endsAtBoundary(name)
}
