package audit_test

import (
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// TestReadJudgesWhatIsReadPast: a line that Parse says is no record is none for a reader either that looks at less of it.
func TestReadJudgesWhatIsReadPast(t *testing.T) {
	const head, tail = `{"v":1,"seq":7,"type":"request","stage":"ResponseComplete","time":"2026-03-01T12:00:00Z","session":"S","id":"x"`, `,"prev":"p"}`
	for _, part := range []string{
		`,"decision":{}`, `,"decision":{"reason":"r"}`, `,"decision":{"reason":"r","mode":"Enforce"}`, `,"decision":{"effect":"","reason":"r"}`, `,"decision":{"effect":"allow","reason":"r"}`,
		`,"outcome":{}`, `,"outcome":{"code":"OK"}`, `,"who":{"process":{}}`, `,"what":{}`, `,"what":{"targets":[{}]}`, `,"corr":{}`, `,"where":{}`, `,"log":{"pruned":{}}`,
		`,"log":{"torn_bytes":-1}`, `,"who":{"assurance":"x","process":{"pid":4294967296}}`,
	} {
		line := head + part + tail
		_, err := audit.Parse([]byte(line))
		for parts := range int(audit.AllParts) + 1 {
			var m audit.Memory
			if _, ok := m.Read(strings.Clone(line), audit.Parts(parts)); ok && err != nil {
				t.Errorf("%s: with the parts %b it is a record, and Parse says: %v", part, parts, err)
				break
			}
		}
	}
}
