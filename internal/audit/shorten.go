package audit

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// shorten returns a copy of e in which no text takes more than limit bytes of JSON (and its mark), and no list has more than a few entries. What e points to
// is shared with the caller, so it is copied first, and so are its texts, which may be parts of longer ones. The session is the writer's own and stays.
func shorten(e Event, limit int) Event {
	session := e.Session
	clip(reflect.ValueOf(&e).Elem(), limit)
	e.Session = session
	return e
}

// clip shortens a value and all that it holds. It goes by the types of records, so that no field can be forgotten.
func clip(v reflect.Value, limit int) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(strings.Clone(clipText(v.String(), limit)))
	case reflect.Pointer:
		if !v.IsNil() {
			own := reflect.New(v.Type().Elem())
			own.Elem().Set(v.Elem())
			v.Set(own)
			clip(own.Elem(), limit)
		}
	case reflect.Struct:
		if v.Type() != reflect.TypeFor[time.Time]() {
			for i := range v.NumField() {
				clip(v.Field(i), limit)
			}
		}
	case reflect.Slice:
		clipSlice(v, limit)
	}
}

// clipSlice shortens a list, or params.
func clipSlice(v reflect.Value, limit int) {
	entries := max(4, limit/32)
	switch at := v.Addr().Interface().(type) {
	case *json.RawMessage:
		if *at = slices.Clone(*at); len(*at) > limit {
			*at = fmt.Appendf(nil, `"[%d bytes cut]"`, len(*at))
		}
		return
	case *[]string:
		*at = clipList(*at, entries, func(mark string) string { return mark })
	case *[]Target:
		*at = clipList(*at, entries, func(mark string) Target { return Target{Kind: "cut", Value: mark} })
	}
	for i := range v.Len() {
		clip(v.Index(i), limit)
	}
}

// clipList returns a copy of the first entries of list and a mark for those left out.
func clipList[T any](list []T, entries int, mark func(string) T) []T {
	if len(list) <= entries {
		return slices.Clone(list)
	}
	return append(slices.Clone(list[:entries]), mark(fmt.Sprintf("[%d entries cut]", len(list)-entries)))
}

// Cut is the beginning of a text, with the mark by which readers know that so many bytes are missing.
func Cut(beginning string, missing int) string {
	return fmt.Sprintf("%s[%d bytes cut]", beginning, missing)
}

// clipText cuts s so that its JSON takes at most limit bytes, and says how much is missing.
func clipText(s string, limit int) string {
	size := 0
	for i, r := range s {
		if size += encodedLen(r); size > limit {
			return Cut(s[:i], len(s)-i)
		}
	}
	return s
}

// encodedLen is an upper bound for the bytes that a character takes in a record.
func encodedLen(r rune) int {
	switch {
	case r > 0xFFFF && isInvisible(r):
		return 12
	case r < 0x20, r == '<', r == '>', r == '&', r == '\u2028', r == '\u2029', r == utf8.RuneError, isInvisible(r):
		return 6
	case r == '"', r == '\\':
		return 2
	}
	return utf8.RuneLen(r)
}
