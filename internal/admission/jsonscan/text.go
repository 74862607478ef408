package jsonscan

import (
	"unicode/utf16"
	"unicode/utf8"
)

// plain holds the bytes that stand for themselves inside a string.
var plain = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= 0x20 && c != '"' && c != '\\'
	}
	return t
}()

// rawString takes a string and returns what is between its quotes, checked but not decoded.
func (r *Reader) rawString() (raw []byte, escaped bool) {
	if !r.take('"') {
		return nil, false
	}
	d, i := r.data, r.pos
	for i < len(d) {
		for i < len(d) && plain[d[i]] {
			i++
		}
		if i == len(d) {
			break
		}
		switch c := d[i]; c {
		case '"':
			raw, r.pos = d[r.pos:i], i+1
			return raw, escaped
		case '\\':
			n := escapeLen(d[i:])
			if n == 0 {
				r.pos = i
				r.Failf("invalid escape in a string")
				return nil, false
			}
			escaped = true
			i += n
		default:
			r.pos = i
			r.Failf("control character %#02x in a string", c)
			return nil, false
		}
	}
	r.pos = len(d)
	r.Failf("end of text in a string")
	return nil, false
}

// escapeLen is the length of the escape that s starts with, or 0 if it is none of RFC 8259, section 7.
func escapeLen(s []byte) int {
	if len(s) < 2 {
		return 0
	}
	switch s[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if _, ok := hex4(s[2:]); ok {
			return 6
		}
	}
	return 0
}

func hex4(s []byte) (rune, bool) {
	if len(s) < 4 {
		return 0, false
	}
	var v rune
	for _, c := range s[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		v = v<<4 | rune(c)
	}
	return v, true
}

// unescape decodes the escapes of a string that rawString has checked. Half a surrogate pair becomes U+FFFD,
// as in encoding/json.
func unescape(raw []byte) []byte {
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); {
		if raw[i] != '\\' {
			out = append(out, raw[i])
			i++
			continue
		}
		switch c := raw[i+1]; c {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			v, _ := hex4(raw[i+2:])
			i += 6
			if utf16.IsSurrogate(v) {
				pair := utf8.RuneError
				if i+6 <= len(raw) && raw[i] == '\\' && raw[i+1] == 'u' {
					low, _ := hex4(raw[i+2:])
					pair = utf16.DecodeRune(v, low)
				}
				if pair != utf8.RuneError {
					i += 6
				}
				v = pair
			}
			out = utf8.AppendRune(out, v)
			continue
		default: // '"', '\\', '/'
			out = append(out, c)
		}
		i += 2
	}
	return out
}
