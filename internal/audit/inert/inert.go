package inert

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// IsInert says that r prints as itself and moves nothing: no control, format, bidirectional or private rune, no blank
// but the space, no letter or symbol that shows nothing, and no combining mark, which would change its neighbour.
func IsInert(r rune) bool {
	return ' ' <= r && r <= '~' || unicode.IsPrint(r) && !unicode.Is(unicode.M, r) && !isInvisible(r)
}

// isInvisible says that r is a letter or a symbol by its category and shows nothing: the Hangul fillers, which Unicode lists as ignorable by default
// (https://www.unicode.org/reports/tr44/#Default_Ignorable_Code_Point), the Braille pattern without dots, and the null notehead.
func isInvisible(r rune) bool {
	return unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) || r == '\u2800' || r == '\U0001D159'
}

// Line returns s as one line, with every rune that is not inert written as <U+001B> and every byte that is no UTF-8 as <0xFF>.
// Backslashes stay as they are: names of pipes are full of them.
func Line(s string) string { return replace(s, false) }

// Cell returns s for a cell of a spreadsheet: a line that no program takes for a formula, which begin with one of = + - @ or a
// control character, also after blanks (https://owasp.org/www-community/attacks/CSV_Injection). Where a semicolon separates cells, as in many countries,
// another cell begins behind one, quotes or not: a comma stands before the quote. Quotes before its first character may be taken away.
func Cell(s string) string {
	cells := strings.Split(Line(s), ";")
	for i, c := range cells {
		first := strings.TrimLeft(c, ` "`)
		if first != "" && (strings.ContainsRune("=+-@|%", rune(first[0])) || strings.HasPrefix(first, "<U+") || isWide(first)) {
			cells[i] = "'" + c
		}
	}
	return strings.Join(cells, ";")
}

// isWide says that s begins with the full-width form of such a character, which some programs fold.
func isWide(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return strings.ContainsRune("＝＋－＠", r)
}
