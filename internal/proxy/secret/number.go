package secret

import "strings"

// hexadecimal is a needle of bytes written as two digits each, with or without something between them.
type hexadecimal string

func (h hexadecimal) match(text string, at int, steps *int) int {
	for i := range len(h) {
		if *steps--; *steps < 0 {
			return -1
		}
		if i > 0 {
			at = skip(text, at, " ,:-\r\n\t")
			for _, prefix := range []string{"0x", "0X", `\x`, "%", "="} {
				if strings.HasPrefix(text[at:], prefix) {
					at += len(prefix)
					break
				}
			}
		}
		switch {
		case hexAt(text, at, 2) == int(h[i]):
			at += 2
		case h[i] < 16 && hexAt(text, at, 1) == int(h[i]) && hexAt(text, at+1, 1) < 0: // Go writes 0xa
			at++
		default:
			return -1
		}
	}
	return at
}

func (hexadecimal) widen(_ string, s span) span { return s }

// decimal is a needle of bytes written as decimal numbers, as programs print lists of bytes.
type decimal string

func (d decimal) match(text string, at int, steps *int) int {
	for i := range len(d) {
		if *steps--; *steps < 0 {
			return -1
		}
		if i > 0 {
			next := skip(text, at, " ,\r\n\t")
			if next == at {
				return -1
			}
			at = next
		}
		n, end := 0, at
		for ; end < len(text) && '0' <= text[end] && text[end] <= '9' && n < 256; end++ {
			n = 10*n + int(text[end]-'0')
		}
		if end == at || n != int(d[i]) {
			return -1
		}
		at = end
	}
	return at
}

func (decimal) widen(_ string, s span) span { return s }

// skip returns the next byte of text that is none of a set.
func skip(text string, at int, set string) int {
	for at < len(text) && strings.IndexByte(set, text[at]) >= 0 {
		at++
	}
	return at
}

// hexAt returns the number that so many hexadecimal digits make, or -1 if they are not there.
func hexAt(text string, at, digits int) int {
	if at+digits > len(text) {
		return -1
	}
	n := 0
	for _, c := range []byte(text[at : at+digits]) {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		n = n<<4 + int(c)
	}
	return n
}
