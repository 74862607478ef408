package proxy

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"
)

// canaries are secrets with everything that somebody may have to escape.
var canaries = []string{
	"Canary-0x51-plain",
	`C4nary"uo'te\back\\slash`,
	"C4nary\nline\r\ttab",
	"C4nary-grün-日本-😀",
	"C4nary<a>&b;$c`d=e,f",
	"C4nary 100%+/?#=_-~",
}

func littleEndian(s string) string {
	var b strings.Builder
	for _, u := range utf16.Encode([]rune(s)) {
		b.Write([]byte{byte(u), byte(u >> 8)})
	}
	return b.String()
}

func asJSON(s string, escapeHTML bool) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(escapeHTML)
	_ = e.Encode(s)
	return strings.Trim(strings.TrimSpace(b.String()), `"`)
}

func eachByte(s, format string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		fmt.Fprintf(&b, format, c)
	}
	return b.String()
}

// inHTML escapes as templates do.
func inHTML(s string) string { return strings.ReplaceAll(html.EscapeString(s), "+", "&#43;") }

// asSeen is how tables and pages show control characters.
func asSeen(s string) string {
	return regexp.MustCompile(`[[:cntrl:]]`).ReplaceAllStringFunc(s, func(c string) string { return fmt.Sprintf("<U+%04X>", c[0]) })
}

// inBase64 is what base64 has of a text behind so many bytes, whatever stands beside it.
func inBase64(s string, before int, e *base64.Encoding) string {
	encoded := e.EncodeToString([]byte(strings.Repeat("x", before) + s))
	return encoded[(before*8+5)/6 : (before+len(s))*8/6]
}

// spellings are the forms in which a canary could stand in an output. They are made by the encoders of others, and know
// nothing of how secrets are taken out.
func spellings(canary string) map[string]string {
	all := map[string]string{
		"plain": canary, "capitals": strings.ToUpper(canary), "JSON": asJSON(canary, false), "JSON for HTML": asJSON(canary, true),
		"JSON in JSON": asJSON(asJSON(canary, true), true), "quoted": strings.Trim(strconv.Quote(canary), `"`), "quoted in ASCII": strings.Trim(strconv.QuoteToASCII(canary), `"`),
		"quoted, in JSON": asJSON(strings.Trim(strconv.Quote(canary), `"`), true),
		"hex":             hex.EncodeToString([]byte(canary)), "HEX": strings.ToUpper(hex.EncodeToString([]byte(canary))), "hex with blanks": fmt.Sprintf("% x", canary),
		"query": url.QueryEscape(canary), "path": url.PathEscape(canary), "percent": eachByte(canary, "%%%02x"), "PERCENT": eachByte(canary, "%%%02X"),
		"HTML": inHTML(canary), "JSON in HTML": inHTML(asJSON(canary, true)), "inert": asSeen(canary), "inert in HTML": inHTML(asSeen(canary)), "doubled quotes": strings.ReplaceAll(canary, `"`, `""`), "doubled single quotes": strings.ReplaceAll(canary, `'`, `''`),
		"decimal": strings.Trim(fmt.Sprintf("%d", []byte(canary)), "[]"), "UTF-16": littleEndian(canary), "UTF-16 in UTF-8": strings.ToValidUTF8(littleEndian(canary), "\ufffd"),
		"UTF-16 in JSON": asJSON(littleEndian(canary), true), "UTF-16 quoted": strings.Trim(strconv.Quote(littleEndian(canary)), `"`), "UTF-16 in hex": hex.EncodeToString([]byte(littleEndian(canary))),
	}
	for before := range 3 {
		for name, text := range map[string]string{"": canary, " of UTF-16": littleEndian(canary)} {
			all[fmt.Sprintf("base64%s, %d", name, before)] = inBase64(text, before, base64.RawStdEncoding)
			all[fmt.Sprintf("base64 url%s, %d", name, before)] = inBase64(text, before, base64.RawURLEncoding)
		}
	}
	return all
}

// whole are those spellings that a program could print in an error text; what only readers of the log make of it is left out.
func whole(canary string) map[string]string {
	all := spellings(canary)
	for name := range all {
		if strings.HasPrefix(name, "base64") || strings.Contains(name, "inert") || name == "JSON in HTML" {
			delete(all, name)
		}
	}
	for before := range 3 {
		for name, text := range map[string]string{"": canary, " of UTF-16": littleEndian(canary)} {
			all[fmt.Sprintf("base64%s behind %d", name, before)] = base64.StdEncoding.EncodeToString([]byte("u:x"[:before] + text + "!"))
			all[fmt.Sprintf("base64 url%s behind %d", name, before)] = base64.RawURLEncoding.EncodeToString([]byte("u:x"[:before] + text))
		}
	}
	return all
}

// hits names the spellings of canaries that are in an output.
func hits(output string) []string {
	var found []string
	for _, canary := range canaries {
		for name, text := range spellings(canary) {
			if strings.Contains(output, text) {
				found = append(found, fmt.Sprintf("%q, %s", canary, name))
			}
		}
	}
	slices.Sort(found)
	return found
}

func TestTheSearchFindsEverySpellingThatIsPlanted(t *testing.T) {
	for _, canary := range canaries {
		for name, text := range whole(canary) {
			planted := map[string]string{"alone": text, "in a line": `{"error":"map ` + text + `: denied"}`}
			if text == strings.ToValidUTF8(text, "") { // the others become other bytes there
				planted["in a line that was encoded"] = asJSON("map "+text+": denied", true)
			}
			for where, output := range planted {
				if len(hits(output)) == 0 {
					// What was escaped before is escaped twice in a line; then the line is read and its text is searched.
					var text string
					if json.Unmarshal([]byte(`"`+output+`"`), &text) != nil || len(hits(text)) == 0 {
						t.Errorf("%q, %s, %s: not found in %q", canary, name, where, output)
					}
				}
			}
		}
	}
	if found := hits(`{"error":"map [secret]: denied","password":"[redacted]"}`); found != nil {
		t.Errorf("found %q where there is nothing", found)
	}
}
