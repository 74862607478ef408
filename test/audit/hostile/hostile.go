// Package hostile has texts that act on whoever shows them carelessly, for tests of everything that shows records.
// It trusts nobody to have thought of all of them: add what is found.
package hostile

import (
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// Texts are what callers may call themselves, their methods and their paths.
func Texts() []string {
	return []string{
		"\x1b[2J\x1b]0;owned\x07", "\x9b31m", "\u009b2J", "a\nforged line", "a\r\nforged line", "a\rover", "\b\b\b", "\x00", "\x7f", "\t=1+1",
		"\u202eexe.sj\u202c", "\u2066\u2069", "\u200b", "\u2028", "\u2029", "\ufeff", "e\u0301\u0336", "\U000e0041", "\xff\xfe",
		"\u115f", "\u1160", "\u3164", "\uffa0", "\u2800", "\U0001d159",
		"</script><script>alert(1)</script>", "</pre></details><img src=x onerror=alert(1)>", "<svg onload=alert(1)>", `" onmouseover="alert(1)`, "'><b>",
		"]]>", "<!--", "{{.Secret}}", "javascript:alert(1)", "&lt;b&gt;", "</title><style>*{display:none}</style>",
		"=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1:A9)", "|calc", "%0A=1", "  =1", "＝1+1", `=HYPERLINK("http://x.example","y")`, `a","b`, "a;b\"c",
		`{"v":1,"seq":1}`, `\u001b[2J`, `*`, `"`, `\`, "%s%n%d", "$(id)", "`id`",
	}
}

// Event is a record in which every text that a caller or a file can choose is text.
func Event(text string) audit.Event {
	return audit.Event{
		Type: audit.TypeRequest, Stage: audit.StageResponseComplete, Time: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), ID: "hostile",
		Who: &audit.Who{
			Assurance: text, Process: &audit.WhoProcess{PID: 7, Exe: text}, User: &audit.WhoUser{SID: text, Name: text, Groups: []string{text}},
			Pod: &audit.WhoPod{Namespace: text, Name: text, UID: text, ServiceAccount: text}, Container: &audit.WhoContainer{ID: text, Name: text, Image: text},
			TokenID: text, TokenState: text, Doubt: text,
		},
		What: &audit.What{
			Pipe: text, Group: text, Version: text, Method: text, FullMethod: text, Verb: text, Redacted: []string{text},
			Targets: []audit.Target{{Kind: text, Value: text, Canonical: text}},
		},
		Decision: &audit.Decision{
			Effect: audit.EffectDeny, Reason: text, Rule: text, Mode: text, Permits: []string{text}, Policy: &audit.Policy{Name: text, Revision: text, Bundle: 7},
		},
		Outcome: &audit.Outcome{Result: audit.ResultError, Code: text, Error: text},
		Corr:    &audit.Corr{Conn: text, AdmissionUID: text},
		Where:   &audit.Where{Node: text},
	}
}
