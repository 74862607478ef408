package audit

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pipeguard/pipeguard/internal/audit/inert"
)

// line writes a record as encoding/json would, with invisible characters escaped, and a fifth of the time: two
// records are on the way of every call. A test holds the two against each other for every field.
type line struct{ out []byte }

// open begins an object; the first field needs no comma.
func (l *line) open() { l.out = append(l.out, '{') }

func (l *line) close() { l.out = append(l.out, '}') }

// object opens one that is a field, and says whether the record has it.
func (l *line) object(name string, isThere bool) bool {
	if isThere {
		l.key(name)
		l.open()
	}
	return isThere
}

// array writes the entries of a list. It is small enough for the compiler to put write in its place.
func array[T any](l *line, entries []T, write func(*line, T)) {
	l.out = append(l.out, '[')
	for i, e := range entries {
		if i > 0 {
			l.out = append(l.out, ',')
		}
		write(l, e)
	}
	l.out = append(l.out, ']')
}

// key writes a field's name. Names are ours and need no escapes.
func (l *line) key(name string) {
	if l.out[len(l.out)-1] == '{' {
		l.out = append(l.out, '"')
	} else {
		l.out = append(l.out, ',', '"')
	}
	l.out = append(append(l.out, name...), '"', ':')
}

func (l *line) text(name, value string) {
	l.key(name)
	l.out = appendText(l.out, value)
}

// some writes a text that is left out when it is empty.
func (l *line) some(name, value string) {
	if value != "" {
		l.text(name, value)
	}
}

func (l *line) number(name string, value int64) {
	l.key(name)
	l.out = strconv.AppendInt(l.out, value, 10)
}

func (l *line) count(name string, value uint64) {
	l.key(name)
	l.out = strconv.AppendUint(l.out, value, 10)
}

// numbered and counted write what is left out when it is 0.
func (l *line) numbered(name string, value int64) {
	if value != 0 {
		l.number(name, value)
	}
}

func (l *line) counted(name string, value uint64) {
	if value != 0 {
		l.count(name, value)
	}
}

func (l *line) yes(name string, value bool) {
	if value {
		l.key(name)
		l.out = append(l.out, "true"...)
	}
}

// time writes RFC 3339 with nanoseconds; the year was checked.
func (l *line) time(name string, value time.Time) {
	l.key(name)
	l.out = append(l.out, '"')
	l.out = value.AppendFormat(l.out, time.RFC3339Nano)
	l.out = append(l.out, '"')
}

// timed writes a time that is left out when there is none.
func (l *line) timed(name string, value time.Time) {
	if !value.IsZero() {
		l.time(name, value)
	}
}

func (l *line) texts(name string, values []string) {
	if len(values) > 0 {
		l.list(name, values)
	}
}

// list writes a list that is there even when it is empty.
func (l *line) list(name string, values []string) {
	l.key(name)
	if values == nil {
		l.out = append(l.out, "null"...)
		return
	}
	array(l, values, func(l *line, value string) { l.out = appendText(l.out, value) })
}

// json writes what is valid JSON already.
func (l *line) json(name string, value json.RawMessage) {
	if len(value) == 0 {
		return
	}
	l.key(name)
	if isPlain(value) {
		l.out = append(l.out, value...)
		return
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, value); err != nil { // it was checked
		l.out = append(l.out, "null"...)
		return
	}
	l.out = append(l.out, inert.JSON(compact.Bytes())...)
}

// asItIs says of each byte whether a record writes it as it is, in a text or outside one.
var asItIs = func() (is [256]bool) {
	for c := 0x20; c < 0x7F; c++ {
		is[c] = !strings.ContainsRune("\"\\<>&", rune(c))
	}
	return is
}()

// isPlain says whether JSON has nothing that a record would write otherwise.
func isPlain(value []byte) bool {
	for _, c := range value {
		if !asItIs[c] && c != '"' && c != '\\' || c == ' ' {
			return false
		}
	}
	return true
}

// appendText writes a JSON string, with the escapes of encoding/json and those of invisible characters. It gives up where the record is too long
// already: escapes make a text six times as long, and what is too long is thrown away.
func appendText(out []byte, s string) []byte {
	out = append(out, '"')
	for {
		n := 0
		for n < len(s) && asItIs[s[n]] {
			n++
		}
		out = append(out, s[:n]...)
		if s = s[n:]; s == "" || len(out) > MaxRecord {
			return append(out, '"')
		}
		r, n := utf8.DecodeRuneInString(s)
		out = appendRune(out, r, s[:n])
		s = s[n:]
	}
}

// appendRune writes a character of a text that is not plain; s is how the text has it.
func appendRune(out []byte, r rune, s string) []byte {
	switch {
	case r == '"' || r == '\\':
		return append(out, '\\', byte(r))
	case r == '\b':
		return append(out, '\\', 'b')
	case r == '\f':
		return append(out, '\\', 'f')
	case r == '\n':
		return append(out, '\\', 'n')
	case r == '\r':
		return append(out, '\\', 'r')
	case r == '\t':
		return append(out, '\\', 't')
	case r < 0x20 || r == utf8.RuneError || r == '<' || r == '>' || r == '&' || r == '\u2028' || r == '\u2029' || isInvisible(r):
		return inert.AppendEscape(out, r)
	}
	return append(out, s...)
}
