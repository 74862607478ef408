package secret

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// Mark stands where a secret stood.
	Mark = "[secret]"
	// Withheld stands for a text whose other words would give a secret away.
	Withheld = "[the text is withheld, since it may repeat a secret]"
)

const (
	// minRunes is the shortest secret that is looked for, in characters. A shorter one is in nearly every text, and whether it
	// was found in one would tell most of it.
	minRunes = 4
	// minUnlike is the shortest secret whose place in a text may be shown. Whoever knows how the text begins and ends
	// knows a word that is missing.
	minUnlike = 8
	// maxText is the longest text that is looked at, in bytes. A record has no more, and the search takes time.
	maxText = 8 << 10
	// maxSteps bounds the search in a text. It takes about twenty for each byte, unless secret and text were made for it to take long.
	maxSteps = 1 << 19
)

// Values are the secrets of one request.
type Values struct {
	needles []needle
	isShort bool // one is too short to be looked for
	isWord  bool // one could be a word of the text that repeats it
}

// New returns nil if there is no secret: empty values are none.
func New(values ...string) *Values {
	if len(values) == 0 {
		return nil
	}
	var v Values
	for _, value := range slices.Compact(slices.Sorted(slices.Values(values))) {
		if value == "" {
			continue
		}
		n := utf8.RuneCountInString(value)
		v.isShort = v.isShort || n < minRunes
		v.isWord = v.isWord || n < minUnlike || only(value, 'a', 'z') || only(value, '0', '9')
		v.needles = append(v.needles, needlesOf(value)...)
	}
	if v.needles == nil {
		return nil
	}
	return &v
}

// only says whether all characters are ASCII letters, or digits.
func only(s string, first, last rune) bool {
	return !strings.ContainsFunc(strings.ToLower(s), func(r rune) bool { return r < first || r > last })
}

// Scrub returns text without the secrets, in whatever spelling of this package they are there: with Mark in their places, or
// Withheld instead of all of it. That is so if a secret is very short, whatever the text says; if it was found and could be a
// word of the text, or stands in shown too, which is what readers see of the request; and if the text is very long. Values
// that are nil change nothing.
func (v *Values) Scrub(text, shown string) string {
	switch {
	case v == nil || text == "":
		return text
	case v.isShort || len(text) > maxText:
		return Withheld
	}
	steps := maxSteps
	found := v.find(text, &steps)
	switch {
	case len(found) == 0 && steps > 0:
		return text
	case v.isWord || len(v.find(shown, &steps)) > 0:
		return Withheld
	}
	clean := replace(text, found)
	if len(v.find(clean, &steps)) > 0 || steps <= 0 { // what stood round a secret is one too, or nobody has looked at all of it
		return Withheld
	}
	return clean
}

// span is a part of a text, in bytes.
type span struct{ from, to int }

// find returns the parts of a text that are secrets, in order and apart from each other.
func (v *Values) find(text string, steps *int) []span {
	var found []span
	for at := range len(text) {
		for i := range v.needles {
			if to := v.needles[i].match(text, at, steps); to > at {
				found = append(found, v.needles[i].widen(text, span{at, to}))
			}
		}
	}
	slices.SortFunc(found, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	var apart []span
	for _, s := range found {
		if last := len(apart) - 1; last >= 0 && s.from <= apart[last].to {
			apart[last].to = max(apart[last].to, s.to)
			continue
		}
		apart = append(apart, s)
	}
	return apart
}

func replace(text string, found []span) string {
	var b strings.Builder
	at := 0
	for _, s := range found {
		b.WriteString(text[at:s.from])
		b.WriteString(Mark)
		at = s.to
	}
	b.WriteString(text[at:])
	return b.String()
}
