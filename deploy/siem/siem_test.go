// Package siem_test holds what the configurations for other systems must say.
package siem_test

import (
	"math"
	"os"
	"path"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

// at follows names and numbers into a document.
func at(t *testing.T, doc any, path ...any) any {
	t.Helper()
	for _, step := range path {
		switch key := step.(type) {
		case string:
			m, _ := doc.(map[string]any)
			doc = m[key]
		case int:
			l, _ := doc.([]any)
			if key >= len(l) {
				t.Fatalf("%v: there are %d", path, len(l))
			}
			doc = l[key]
		}
	}
	if doc == nil {
		t.Fatalf("%v is missing", path)
	}
	return doc
}

func config(t *testing.T, name string) any {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var doc any
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return doc
}

// segments is the glob of all segments. Checkpoints and other files of the directory are no records.
const segments = "/audit-*.jsonl"

func TestShippersReadAllSegmentsFromTheirBeginningAndRememberWhere(t *testing.T) {
	bit := config(t, "fluent-bit/fluent-bit.yaml")
	input := at(t, bit, "pipeline", "inputs", 0)
	vector := config(t, "vector/vector.yaml")
	otel := config(t, "otel-collector/collector.yaml")
	for name, c := range map[string]struct {
		got  any
		want any
	}{
		"fluent-bit path":                   {at(t, input, "path"), "${PIPEGUARD_AUDIT_DIR}" + segments},
		"fluent-bit beginning":              {at(t, input, "read_from_head"), true},
		"fluent-bit positions":              {at(t, input, "db"), "${PIPEGUARD_STATE_DIR}/audit.db"},
		"fluent-bit parser":                 {at(t, input, "parser"), at(t, bit, "parsers", 0, "name")},
		"fluent-bit waits":                  {at(t, input, "storage.type"), "filesystem"},
		"fluent-bit tries":                  {at(t, bit, "pipeline", "outputs", 0, "retry_limit"), "no_limits"},
		"vector path":                       {at(t, vector, "sources", "pipeguard_segments", "include", 0), "${PIPEGUARD_AUDIT_DIR}" + segments},
		"vector beginning":                  {at(t, vector, "sources", "pipeguard_segments", "read_from"), "beginning"},
		"vector positions":                  {at(t, vector, "data_dir"), "${PIPEGUARD_STATE_DIR}"},
		"vector lines":                      {at(t, vector, "sources", "pipeguard_segments", "max_line_bytes"), 8192},
		"vector waits":                      {at(t, vector, "sinks", "loki", "buffer", "type"), "disk"},
		"vector loses nothing":              {at(t, vector, "sinks", "loki", "buffer", "when_full"), "block"},
		"collector path":                    {at(t, otel, "receivers", "filelog/pipeguard", "include", 0), "${env:PIPEGUARD_AUDIT_DIR}" + segments},
		"collector beginning":               {at(t, otel, "receivers", "filelog/pipeguard", "start_at"), "beginning"},
		"collector positions":               {at(t, otel, "receivers", "filelog/pipeguard", "storage"), "file_storage/pipeguard"},
		"collector storage":                 {at(t, otel, "service", "extensions", 0), "file_storage/pipeguard"},
		"collector waits for ends of lines": {at(t, otel, "receivers", "filelog/pipeguard", "force_flush_period"), "0s"},
		"collector parses":                  {at(t, otel, "receivers", "filelog/pipeguard", "operators", 0, "type"), "json_parser"},
		"collector bad lines":               {at(t, otel, "receivers", "filelog/pipeguard", "operators", 0, "on_error"), "send"},
		"collector waits":                   {at(t, otel, "exporters", "otlp", "sending_queue", "storage"), "file_storage/pipeguard"},
		"collector has its way":             {at(t, otel, "service", "pipelines", "logs/pipeguard", "receivers", 0), "filelog/pipeguard"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
}

func TestShippersLeaveWhatIsNoSegment(t *testing.T) {
	pattern := strings.TrimPrefix(segments, "/")
	for name, want := range map[string]bool{
		segment.Name(1): true, segment.Name(math.MaxUint64): true, "checkpoints": false, "checkpoints.new": false, "start": false, "lock": false, "audit-signing.key": false,
	} {
		if got, err := path.Match(pattern, name); got != want || err != nil {
			t.Errorf("%s is read: %t, %v", name, got, err)
		}
	}
}

func TestRsyslogReadsAllSegmentsFromTheirBeginningAndRemembersWhere(t *testing.T) {
	conf, err := os.ReadFile("rsyslog/pipeguard.conf")
	if err != nil {
		t.Fatal(err)
	}
	var settings []string
	for line := range strings.Lines(string(conf)) {
		line, _, _ = strings.Cut(line, "#")
		settings = append(settings, strings.Fields(line)...)
	}
	there := strings.Join(settings, " ")
	for _, want := range []string{
		"file=`echo $PIPEGUARD_AUDIT_DIR" + segments + "`", "workDirectory=`echo $PIPEGUARD_STATE_DIR`", `freshStartTail="off"`, `persistStateAfterSubmission="on"`,
		`main_queue(queue.type="Direct")`, `action.resumeRetryCount="-1"`, `string="%msg%\n"`, `readTimeout="0"`, `reopenOnTruncate="off"`,
	} {
		if !strings.Contains(there, want) {
			t.Errorf("%s is missing", want)
		}
	}
	if strings.Contains(there, "persistStateInterval") {
		t.Error("positions move before records are handed over")
	}
}
