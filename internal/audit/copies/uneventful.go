package copies

import "github.com/pipeguard/pipeguard/internal/audit"

// decisive are the objects that are looked into.
var decisive = []string{"decision", "outcome"}

// isUneventful says that nothing was wrong with the request or connection of a record: no rule denied it, and it ended well or not yet. The writer of
// the log asks it for each record. What it does not know is not uneventful.
func isUneventful(line []byte) bool {
	isKnown, isEnded, isIntent, bad := false, false, false, false
	isWhole := scan(line, func(path, raw []byte) {
		switch string(path) {
		case "type":
			isKnown = true
			bad = bad || !is(raw, string(audit.TypeRequest)) && !is(raw, string(audit.TypeConnection)) && !is(raw, string(audit.TypeAdmission))
		case "stage":
			isIntent = is(raw, string(audit.StageRequestReceived))
			bad = bad || is(raw, string(audit.StagePanic)) || is(raw, string(audit.StageOrphaned))
		case "decision.effect":
			bad = bad || !is(raw, string(audit.EffectAllow))
		case "outcome.result":
			isEnded = true
			bad = bad || !is(raw, audit.ResultOK) && !is(raw, audit.ResultIdle)
		case "decision", "outcome": // not an object
			bad = true
		}
	}, decisive...)
	return isWhole && isKnown && !bad && (isEnded || isIntent)
}

// is says that raw is the JSON string of a plain word.
func is(raw []byte, word string) bool {
	return len(raw) == len(word)+2 && raw[0] == '"' && string(raw[1:len(raw)-1]) == word
}
