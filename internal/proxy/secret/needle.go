package secret

import (
	"encoding/base64"
	"encoding/binary"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// needle is one encoding of a secret, to be found in whatever way its characters are escaped.
type needle interface {
	// match returns where the encoding ends that begins at a byte of text, or -1. It counts its steps down.
	match(text string, at int, steps *int) int
	// widen returns more of the text than what was matched, if the rest tells of the secret too.
	widen(text string, s span) span
}

// needlesOf returns a secret as it is, in UTF-16 as Windows has it, in base64 of either, as hexadecimal and decimal numbers.
func needlesOf(secret string) []needle {
	little, big := inUTF16(secret, binary.LittleEndian), inUTF16(secret, binary.BigEndian)
	list := []needle{textOf(secret), bytesOf(little), bytesOf(big), hexadecimal(secret), decimal(secret)}
	if !isASCII(secret) { // it may be no text, or have been read as another character set
		list = append(list, bytesOf(secret))
	}
	for _, bytes := range []string{secret, little} {
		for before := range 3 {
			list = append(list, base64Of(bytes, before))
		}
	}
	return append(list, hexadecimal(little), hexadecimal(big), decimal(little))
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })
}

func inUTF16(s string, order binary.AppendByteOrder) string {
	var out []byte
	for _, unit := range utf16.Encode([]rune(s)) {
		out = order.AppendUint16(out, unit)
	}
	return string(out)
}

// sequence is a needle of characters, each of which may be escaped in its own way.
type sequence []symbol

// match goes on from all places at once where the characters so far may end: a secret of backslashes, which may be doubled or
// not, has more ways than anybody could try one by one.
func (n sequence) match(text string, at int, steps *int) int {
	ends := []int{at}
	var next []int
	for i := range n {
		next = next[:0]
		if *steps -= len(ends); *steps < 0 {
			return -1
		}
		for _, end := range ends {
			next = n[i].ends(text, end, next)
		}
		if len(next) == 0 {
			return -1
		}
		slices.Sort(next)
		ends, next = slices.Compact(next), ends
	}
	return ends[len(ends)-1]
}

func (sequence) widen(_ string, s span) span { return s }

// inBase64 is a needle whose first and last characters are mixed with what stands beside the secret.
type inBase64 struct{ sequence }

// base64Of returns what all base64 texts have in common that hold the secret behind so many bytes, counted from a group of three.
func base64Of(secret string, before int) needle {
	encoded := base64.RawStdEncoding.EncodeToString(append(make([]byte, before), secret...))
	first := (before*8 + 5) / 6            // the first character that has bits of the secret alone
	last := (before + len(secret)) * 8 / 6 // one behind the last
	var n sequence
	for _, c := range encoded[first:max(first, last)] {
		n = append(n, base64Symbol(c))
	}
	return inBase64{n}
}

// match finds nothing of a secret so short that what is left of it could be there by chance.
func (n inBase64) match(text string, at int, steps *int) int {
	if len(n.sequence) < minRunes {
		return -1
	}
	return n.sequence.match(text, at, steps)
}

// widen takes the whole of the text in base64: the characters beside those that were found have bits of the secret.
func (inBase64) widen(text string, s span) span {
	for s.from > 0 && isBase64(text[s.from-1]) {
		s.from--
	}
	for s.to < len(text) && isBase64(text[s.to]) {
		s.to++
	}
	return s
}

func isBase64(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	}
	return c == '+' || c == '/' || c == '-' || c == '_' || c == '='
}
