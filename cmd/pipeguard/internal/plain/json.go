package plain

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// JSON returns v as one line of JSON with a newline at its end. Less-than, greater-than and ampersand
// stay readable; every rune that is not inert comes as a \u escape, and bytes that are no UTF-8 as \ufffd.
func JSON(v any) ([]byte, error) { return encode(v, "") }

// IndentedJSON is JSON over several lines, for people.
func IndentedJSON(v any) ([]byte, error) { return encode(v, "  ") }

func encode(v any, indent string) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return escapeJSON(buf.Bytes()), nil
}

// escapeJSON works on encoded JSON, in which anything that is not inert, save the newlines
// of the layout, can only stand inside a string: there an escape means the same.
func escapeJSON(doc []byte) []byte {
	out := make([]byte, 0, len(doc))
	for i, width := 0, 0; i < len(doc); i += width {
		var r rune
		r, width = utf8.DecodeRune(doc[i:])
		switch {
		case r == '\n' || IsInert(r):
			out = append(out, doc[i:i+width]...)
		case r > 0xFFFF:
			hi, lo := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, hi, lo)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}
