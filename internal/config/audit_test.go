package config

import (
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/audit/evidence"
)

// withKeys puts verifier keys into a configuration: KEY is a witness's, and LOG a log's.
func withKeys(t *testing.T, text string) string {
	t.Helper()
	key, err := evidence.NewKey("witness.example/w")
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer("KEY", key.WitnessKey(), "LOG", key.LogKey()).Replace(text)
}

func TestAuditSettingsThatCannotBeAreFaults(t *testing.T) {
	for name, c := range map[string]struct{ text, field string }{
		"an unknown answer to failures":          {"onFailure: ignore", "audit.onFailure"},
		"a segment of no length":                 {"segmentMiB: -1", "audit.segmentMiB"},
		"a segment longer than any":              {"segmentMiB: 5000", "audit.segmentMiB"},
		"room for one segment":                   {"keepMiB: 100", "audit.keepMiB"},
		"room for one segment of the given size": {"keepMiB: 300, segmentMiB: 200", "audit.keepMiB"},
		"an age below a minute":                  {"segmentAge: 10s", "audit.segmentAge"},
		"records for a moment":                   {"keepAge: 1m", "audit.keepAge"},
		"more operations than there is room for": {"operations: 5000", "audit.operations"},
		"a key without a directory":              {"signing: {key: audit.key}", "audit.signing.key"},
		"an old key and no new one":              {"signing: {old: 'C:\\k'}", "audit.signing.old"},
		"a witness without TLS":                  {"witness: {url: 'http://w/witness', key: KEY}", "audit.witness.url"},
		"a witness with a password in its URL":   {"witness: {url: 'https://a:b@w/witness', key: KEY}", "audit.witness.url"},
		"a witness that could be anybody":        {"witness: {url: 'https://w/witness'}", "audit.witness.key"},
		"a witness without an address":           {"witness: {key: KEY}", "audit.witness.url"},
		"a witness by a key that is none":        {"witness: {url: 'https://w/witness', key: k}", "audit.witness.key"},
		"a witness by a log's key":               {"witness: {url: 'https://w/witness', key: LOG}", "audit.witness.key"},
		"a collector at no port":                 {"copies: {otlp: {endpoint: 'c:0'}}", "audit.copies.otlp.endpoint"},
		"a collector at a port that is none":     {"copies: {otlp: {endpoint: 'c:99999'}}", "audit.copies.otlp.endpoint"},
		"a log somewhere":                        {"path: audit", "audit.path"},
		"a log above":                            {"path: 'C:\\a\\..\\b'", "audit.path"},
		"questions without a pause":              {"witness: {url: 'https://w', key: KEY, interval: 1ms}", "audit.witness.interval"},
		"half of the records in the event log":   {"copies: {eventLog: some}", "audit.copies.eventLog"},
		"a collector without an address":         {"copies: {otlp: {insecure: true}}", "audit.copies.otlp.endpoint"},
		"a collector without a port":             {"copies: {otlp: {endpoint: collector}}", "audit.copies.otlp.endpoint"},
		"a collector with a scheme":              {"copies: {otlp: {endpoint: 'http://collector:4317'}}", "audit.copies.otlp.endpoint"},
		"authorities for plain text":             {"copies: {otlp: {endpoint: 'c:1', insecure: true, caFile: 'C:\\ca'}}", "audit.copies.otlp.caFile"},
		"a signature on standard output":         {"path: '-', signing: {key: 'C:\\k'}", "audit.path"},
		"retention of standard output":           {"path: '-', keepAge: 24h", "audit.path"},
		"an unknown key":                         {"rotate: true", "rotate"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseProxy("f", []byte(head+"audit: {"+withKeys(t, c.text)+"}\n"))
			if err == nil || !strings.Contains(err.Error(), c.field) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAuditSettingsAreTaken(t *testing.T) {
	for _, text := range []string{
		"path: '-'", "onFailure: continue", "onFailure: shutdown", "keepMiB: 128", "keepMiB: 8, segmentMiB: 4", "segmentAge: 1m, keepAge: 1h",
		"signing: {key: 'C:\\k', old: 'C:\\o'}", "witness: {url: 'https://w:8443/witness', key: KEY, interval: 5s, caFile: 'C:\\ca'}",
		"copies: {stdout: true, eventLog: denied, otlp: {endpoint: 'c:4317', caFile: 'C:\\ca'}}", "copies: {otlp: {endpoint: '[::1]:4317', insecure: true}}",
	} {
		if _, err := ParseProxy("f", []byte(head+"audit: {"+withKeys(t, text)+"}\n")); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestSettingsByWhichRecordsGoMissingAreWarnedOf(t *testing.T) {
	p, err := ParseProxy("f", []byte(head+"audit: {noSync: true, onFailure: continue}\n"))
	if err != nil {
		t.Fatal(err)
	}
	warnings := strings.Join(p.Warnings(), "\n")
	for _, want := range []string{"f:3:", "audit.noSync", "audit.onFailure"} {
		if !strings.Contains(warnings, want) {
			t.Errorf("%q is not in %q", want, warnings)
		}
	}
	if p, err = ParseProxy("f", []byte(head+"audit: {onFailure: fail_operation}\n")); err != nil || strings.Contains(strings.Join(p.Warnings(), ""), "audit") {
		t.Errorf("%v, %v", p.Warnings(), err)
	}
}
