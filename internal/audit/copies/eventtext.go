package copies

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/pipeguard/pipeguard/internal/audit/inert"
)

// Bounds of events' texts, in UTF-16 code units.
const (
	// mostEvent is what Windows takes in one string of an event.
	// https://learn.microsoft.com/windows/win32/api/winbase/nf-winbase-reporteventw
	mostEvent = 31_839
	mostField = 256
	cutMark   = "[cut]"
)

// shown are the fields that stand above the record, for people who read the event itself.
var shown = []struct{ name, path string }{
	{"method", "what.method"}, {"full method", "what.full_method"}, {"pipe", "what.pipe"},
	{"program", "who.process.exe"}, {"process", "who.process.pid"}, {"account", "who.user.sid"}, {"namespace", "who.pod.ns"}, {"pod", "who.pod.name"},
	{"rule", "decision.rule"}, {"reason", "decision.reason"}, {"error", "outcome.error"}, {"count", "outcome.count"}, {"fault", "log.fault"}, {"audit id", "id"},
}

// recordText is the text of an event. What stands in it are characters that print as themselves: control characters and those that
// turn the direction of text are written out, so that no field can look like another.
func recordText(k kind, f *facts, line []byte) string {
	var b strings.Builder
	b.WriteString(k.title)
	for _, s := range shown {
		if v := f.text(s.path); v != "" {
			b.WriteString("\r\n" + s.name + ": " + cut(harmless(v), mostField))
		}
	}
	b.WriteString("\r\nrecord: " + harmlessJSON(line))
	return cut(b.String(), mostEvent)
}

func checkpointText(line []byte) string {
	return cut("Checkpoint of the audit log\r\nrecord: "+harmlessJSON(line), mostEvent)
}

// harmless is a field as one line. The event viewer puts other texts in the place of %1 and %%1, so no percent sign is left.
func harmless(s string) string { return strings.ReplaceAll(inert.Line(s), "%", "<U+0025>") }

// harmlessJSON is the record as JSON of one line that means the same. What has control characters is no JSON.
func harmlessJSON(line []byte) string {
	if bytes.ContainsFunc(line, func(r rune) bool { return r < ' ' }) {
		return harmless(string(line))
	}
	return strings.ReplaceAll(string(inert.JSON(line)), "%", `\u0025`)
}

// cut shortens a text to a number of UTF-16 code units, and marks where.
func cut(s string, most int) string {
	if len(s) <= most { // there are never more units than bytes
		return s
	}
	units, end := 0, 0
	for i, r := range s {
		n := 1
		if r > 0xFFFF {
			n = 2
		}
		if units += n; units > most {
			return s[:end] + cutMark
		}
		if units <= most-len(cutMark) {
			end = i + utf8.RuneLen(r)
		}
	}
	return s
}
