package inert

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Text is Line for text of several lines: newlines and tabs stay.
func Text(s string) string { return replace(s, true) }

func replace(s string, multiline bool) string {
	clean := true
	for i := 0; i < len(s) && clean; i++ {
		clean = s[i] >= ' ' && s[i] <= '~'
	}
	if clean {
		return s
	}
	var b strings.Builder
	for i, width := 0, 0; i < len(s); i += width {
		var r rune
		r, width = utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && width <= 1:
			fmt.Fprintf(&b, "<0x%02X>", s[i])
		case IsInert(r), multiline && (r == '\n' || r == '\t'):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, "<U+%04X>", r)
		}
	}
	return b.String()
}

// Marshal returns v as one line of JSON with a newline at its end. Less-than, greater-than and ampersand stay readable; every
// rune that is not inert comes as a \u escape, and bytes that are no UTF-8 as \ufffd.
func Marshal(v any) ([]byte, error) { return marshal(v, "") }

// MarshalIndent is Marshal over several lines, for people.
func MarshalIndent(v any) ([]byte, error) { return marshal(v, "  ") }

func marshal(v any, indent string) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return escaped(buf.Bytes(), ""), nil
}

// JSON returns a JSON document of one line in which every rune that is not inert, and each of < > &, stands as an escape. It means
// the same. Blanks between tokens become spaces.
func JSON(doc []byte) []byte {
	return escaped(bytes.Map(func(r rune) rune {
		if r == '\n' || r == '\r' || r == '\t' { // valid JSON has them between tokens alone
			return ' '
		}
		return r
	}, doc), "<>&")
}

// escaped returns a JSON document in which every rune that is not inert, and each of also, stands as an escape, save the newlines of the layout:
// these runes can only stand inside a string, where an escape means the same.
func escaped(doc []byte, also string) []byte {
	out := make([]byte, 0, len(doc))
	for i, width := 0, 0; i < len(doc); i += width {
		var r rune
		r, width = utf8.DecodeRune(doc[i:])
		if r == '\n' || IsInert(r) && r != utf8.RuneError && !strings.ContainsRune(also, r) { // a byte that is no UTF-8, too, is U+FFFD
			out = append(out, doc[i:i+width]...)
		} else {
			out = AppendEscape(out, r)
		}
	}
	return out
}

const hexDigits = "0123456789abcdef"

// AppendEscape appends a rune as JSON writes one that it does not write as it is.
func AppendEscape(out []byte, r rune) []byte {
	if r > 0xFFFF {
		hi, lo := utf16.EncodeRune(r)
		return AppendEscape(AppendEscape(out, hi), lo)
	}
	return append(out, '\\', 'u', hexDigits[r>>12&0xF], hexDigits[r>>8&0xF], hexDigits[r>>4&0xF], hexDigits[r&0xF])
}
