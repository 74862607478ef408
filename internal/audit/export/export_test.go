package export

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/inert"
	"github.com/pipeguard/pipeguard/internal/audit/query"
	"github.com/pipeguard/pipeguard/test/audit/hostile"
)

// samples are the records that the detection rules are tried on: every type and stage, with and without each part.
func samples(t *testing.T) (all []query.Record) {
	t.Helper()
	files, err := filepath.Glob("../../../deploy/siem/sigma/samples/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatal("no samples", err)
	}
	for _, name := range files {
		if strings.Contains(name, "unguarded") { // diagnostics
			continue
		}
		all = append(all, read(t, name, nil)...)
	}
	return all
}

// read returns the records of a file, or of in if its name is -.
func read(t *testing.T, name string, in io.Reader) (all []query.Record) {
	t.Helper()
	source, err := query.Open([]string{name}, in)
	if err != nil {
		t.Fatal(err)
	}
	for r, err := range source.Records() {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r.Keep())
	}
	return all
}

// recorded is a record as the log's own writer writes it.
func recorded(t *testing.T, e audit.Event) query.Record {
	t.Helper()
	var out bytes.Buffer
	if _, err := audit.NewStream(&out).Append(t.Context(), &e); err != nil {
		t.Fatal(err)
	}
	return read(t, "-", &out)[0]
}

func exported(t *testing.T, format string, records ...query.Record) string {
	t.Helper()
	var out bytes.Buffer
	w, err := New(format, &out)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if err := w.Record(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// schema is what an event must have: types by the names of places, with ! for those that must be there. Names that are not in
// it are refused, so that a slip of the pen is no new field. "any" is an object that the schema leaves open.
type schema map[string]string

// ocsfSchema is the part of OCSF 1.6 that is used, https://schema.ocsf.io/1.6.0/classes: base event, the classes 4001, 6002 and 6003,
// and the profiles host, container and security_control.
var ocsfSchema = schema{
	"activity_id": "int!", "activity_name": "text", "category_uid": "int!", "count": "int", "start_time": "int", "end_time": "int", "class_uid": "int!", "type_uid": "int!", "time": "int!",
	"severity_id": "int!", "severity": "text", "status_id": "int", "status": "text", "status_code": "text", "status_detail": "text",
	"message": "text", "duration": "int", "unmapped": "any", "action_id": "int", "action": "text", "disposition_id": "int", "disposition": "text",
	"metadata.version": "text!", "metadata.product.name": "text!", "metadata.product.vendor_name": "text!", "metadata.profiles": "texts",
	"metadata.uid": "text", "metadata.sequence": "int", "metadata.log_name": "text", "metadata.log_version": "text",
	"metadata.original_time": "text", "metadata.correlation_uid": "text",
	"policy.name": "text", "policy.uid": "text", "policy.version": "text", "policy.desc": "text",
	"device.hostname": "text", "device.type_id": "int", "device.type": "text",
	"app.name": "text", "app.vendor_name": "text",
	"actor.app_name": "text", "actor.user.name": "text", "actor.user.uid": "text",
	"actor.process.pid": "int", "actor.process.name": "text", "actor.process.created_time": "int",
	"actor.process.file.name": "text", "actor.process.file.path": "text", "actor.process.file.type_id": "int",
	"actor.process.container.uid": "text", "actor.process.container.name": "text", "actor.process.container.pod_uuid": "text",
	"actor.process.container.image.name": "text", "actor.process.container.image.uid": "text",
	"api.operation": "text", "api.version": "text", "api.service.name": "text", "api.request.uid": "text",
	"api.response.error": "text", "api.response.error_message": "text",
	"src_endpoint.name": "text", "src_endpoint.uid": "text", "dst_endpoint.name": "text", "dst_endpoint.svc_name": "text",
	"resources.name": "text", "resources.type": "text",
}

// ocsfClasses are what each class wants beside that, and the activities it knows; 0 and 99 are of all.
var ocsfClasses = map[int]struct {
	wants      []string
	activities []int
}{
	4001: {[]string{"src_endpoint", "dst_endpoint"}, []int{1, 2, 3, 4, 5, 6}},
	6002: {[]string{"app"}, []int{1, 2, 3, 4}},
	6003: {[]string{"actor", "api", "src_endpoint"}, []int{1, 2, 3, 4}},
}

// ecsSchema is the part of ECS 8.17 that is used, https://www.elastic.co/docs/reference/ecs/ecs-field-reference.
var ecsSchema = schema{
	"@timestamp": "text!", "ecs.version": "text!", "message": "text", "error.message": "text", "error.code": "text",
	"event.kind": "text!", "event.module": "text", "event.dataset": "text", "event.provider": "text", "event.sequence": "int", "event.id": "text",
	"event.category": "texts!", "event.type": "texts!", "event.outcome": "text!", "event.action": "text", "event.reason": "text", "event.code": "text", "event.duration": "int", "event.start": "text", "event.end": "text",
	"user.id": "text", "user.name": "text", "process.pid": "int", "process.executable": "text", "process.name": "text", "process.start": "text",
	"container.id": "text", "container.name": "text", "container.image.name": "text",
	"orchestrator.type": "text", "orchestrator.namespace": "text", "orchestrator.resource.type": "text", "orchestrator.resource.name": "text", "orchestrator.resource.id": "text",
	"rule.name": "text", "rule.ruleset": "text", "rule.version": "text", "host.name": "text", "pipeguard": "any",
}

// check says what of a document the schema does not know or misses.
func (s schema) check(doc map[string]any) (faults []string) {
	found := map[string]bool{}
	var walk func(name string, v any)
	walk = func(name string, v any) {
		kind := strings.TrimSuffix(s[name], "!")
		found[name] = true
		switch v := v.(type) {
		case map[string]any:
			if kind == "any" {
				return
			}
			for key, value := range v {
				walk(strings.TrimPrefix(name+"."+key, "."), value)
			}
			return
		case []any:
			for _, item := range v {
				if _, isObject := item.(map[string]any); isObject {
					walk(name, item)
				} else if _, isText := item.(string); !isText || kind != "texts" {
					faults = append(faults, name+" is no list of texts")
				}
			}
			return
		case json.Number:
			if _, err := v.Int64(); err == nil && kind == "int" {
				return
			}
		case string:
			if v != "" && kind == "text" {
				return
			}
		}
		faults = append(faults, fmt.Sprintf("%s is %v, want %q", name, v, kind))
	}
	walk("", doc)
	for name, kind := range s {
		if strings.HasSuffix(kind, "!") && !found[name] {
			faults = append(faults, name+" is missing")
		}
	}
	return faults
}

func documents(t *testing.T, text string) (all []map[string]any) {
	t.Helper()
	for line := range strings.Lines(text) {
		decoder := json.NewDecoder(strings.NewReader(line))
		decoder.UseNumber()
		var doc map[string]any
		if err := decoder.Decode(&doc); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		all = append(all, doc)
	}
	return all
}

// number is a number of a document.
func number(doc map[string]any, name string) int {
	n, _ := doc[name].(json.Number)
	i, err := n.Int64()
	if err != nil {
		return -1
	}
	return int(i)
}

func TestOCSFEventsAreOfTheirSchema(t *testing.T) {
	records := append(samples(t), recorded(t, hostile.Event("x")), recorded(t, audit.Event{Type: audit.TypeRequest, Stage: audit.StageResponseComplete}),
		recorded(t, audit.Event{Type: audit.TypeAdmission, Stage: audit.StageResponseComplete, What: &audit.What{Verb: "CREATE"}}), recorded(t, audit.Event{Type: audit.TypeLog, Stage: audit.StageLogPrune}))
	classes := map[int]int{}
	for i, doc := range documents(t, exported(t, "ocsf", records...)) {
		class, activity := number(doc, "class_uid"), number(doc, "activity_id")
		classes[class]++
		faults := ocsfSchema.check(doc)
		of, ok := ocsfClasses[class]
		for _, name := range of.wants {
			if doc[name] == nil {
				faults = append(faults, name+" is missing")
			}
		}
		if !ok || number(doc, "type_uid") != class*100+activity || number(doc, "category_uid") != class/1000 || activity != 0 && activity != 99 && !slices.Contains(of.activities, activity) {
			faults = append(faults, "the numbers of class, type and activity do not fit")
		}
		if len(faults) > 0 {
			t.Errorf("%s\n%s", records[i].Raw, strings.Join(faults, "\n"))
		}
	}
	if len(classes) != len(ocsfClasses) {
		t.Errorf("classes %v: not all were tried", classes)
	}
}

func TestECSDocumentsAreOfTheirSchema(t *testing.T) {
	records := append(samples(t), recorded(t, hostile.Event("x")), recorded(t, audit.Event{Type: audit.TypeAdmission, Stage: audit.StageResponseComplete, What: &audit.What{Verb: "CREATE"}}))
	categories := []string{"api", "network", "configuration"}
	types := []string{"access", "allowed", "change", "connection", "denied", "end", "info", "start"}
	for i, doc := range documents(t, exported(t, "ecs", records...)) {
		faults := ecsSchema.check(doc)
		event := doc["event"].(map[string]any)
		for name, allowed := range map[string][]string{"category": categories, "type": types} {
			list, _ := event[name].([]any)
			for _, v := range list {
				if !slices.Contains(allowed, v.(string)) {
					faults = append(faults, fmt.Sprintf("event.%s may not be %v", name, v))
				}
			}
		}
		if !slices.Contains([]any{"success", "failure", "unknown"}, event["outcome"]) {
			faults = append(faults, fmt.Sprintf("event.outcome may not be %v", event["outcome"]))
		}
		if len(faults) > 0 {
			t.Errorf("%s\n%s", records[i].Raw, strings.Join(faults, "\n"))
		}
	}
}

func TestTheSchemaFindsFaults(t *testing.T) {
	doc := documents(t, exported(t, "ocsf", recorded(t, hostile.Event("x"))))[0]
	for name, spoil := range map[string]func(){
		"a text for a number": func() { doc["time"] = "now" },
		"a missing field":     func() { delete(doc, "class_uid") },
		"an unknown field":    func() { doc["colour"] = "red" },
		"an empty text":       func() { doc["message"] = "" },
	} {
		before := len(ocsfSchema.check(doc))
		if spoil(); len(ocsfSchema.check(doc)) != before+1 {
			t.Errorf("%s is not found", name)
		}
	}
}

func TestADenialThatWasNotEnforcedIsObserved(t *testing.T) {
	e := hostile.Event("x")
	e.Decision.Mode = "LogOnly"
	doc := documents(t, exported(t, "ocsf", recorded(t, e)))[0]
	if doc["action"] != "Observed" || doc["disposition"] != "Logged" {
		t.Errorf("it is %v, %v", doc["action"], doc["disposition"])
	}
}

func TestHostileTextsStayInert(t *testing.T) {
	for _, text := range hostile.Texts() {
		r := recorded(t, hostile.Event(text))
		for _, format := range Formats() {
			out := exported(t, format, r)
			lines := 1
			if format == "csv" {
				lines = 2
			}
			body := strings.ReplaceAll(out, "\r\n", "\n")
			if strings.Count(body, "\n") != lines {
				t.Errorf("%s of %q takes other lines: %q", format, text, out)
			}
			for _, c := range strings.ReplaceAll(body, "\n", "") {
				if !inert.IsInert(c) {
					t.Errorf("%s of %q holds %U", format, text, c)
				}
			}
			if format != "csv" {
				if strings.ContainsAny(out, "<>") {
					t.Errorf("%s of %q holds a tag", format, text)
				}
				documents(t, out)
				continue
			}
			table, err := csv.NewReader(strings.NewReader(out)).ReadAll()
			if err != nil || len(table) != 2 || len(table[0]) != len(table[1]) {
				t.Fatalf("csv of %q: %d rows, %v", text, len(table), err)
			}
			for i, cell := range table[1] {
				if trimmed := strings.TrimLeft(cell, " \u3000"); trimmed != "" && strings.ContainsRune("=+-@|%", rune(trimmed[0])) {
					t.Errorf("%s of %q is a formula: %q", table[0][i], text, cell)
				}
			}
		}
	}
}

func TestFormatsHaveTheirGoldenForm(t *testing.T) {
	e := hostile.Event("text")
	e.Decision.Effect, e.Outcome.Result, e.Outcome.Code, e.Outcome.LatencyUS, e.What.Verb, e.What.Method = audit.EffectAllow, audit.ResultOK, "OK", 1500, "write", "DeleteLink"
	r := recorded(t, e)
	for _, format := range Formats() {
		got := strings.ReplaceAll(exported(t, format, r), r.Session, "SESSION")
		name := filepath.Join("testdata", format+".golden")
		if os.Getenv("UPDATE_GOLDEN") != "" {
			if err := os.WriteFile(name, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s differs; if users should see that, run with UPDATE_GOLDEN=1:\n%s", format, diff)
		}
	}
}

// Whoever sums up an export must come to the number of requests, however few records they have.
func TestEveryFormatSaysHowManyASummaryStandsFor(t *testing.T) {
	e := hostile.Event("text")
	e.Stage, e.Outcome.Count, e.Outcome.First = audit.StageSummary, 5000, e.Time.Add(-time.Minute)
	r, one := recorded(t, e), recorded(t, hostile.Event("text"))
	first, last := e.Outcome.First.UTC().Format(time.RFC3339Nano), e.Time.UTC().Format(time.RFC3339Nano)

	table, err := csv.NewReader(strings.NewReader(exported(t, "csv", r, one))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	count, since := slices.Index(table[0], "count"), slices.Index(table[0], "first")
	if table[1][count] != "5000" || table[1][since] != first || table[2][count] != "1" || table[2][since] != "" {
		t.Errorf("csv: %q", table)
	}
	for format, s := range map[string]schema{"ecs": ecsSchema, "ocsf": ocsfSchema} {
		both := documents(t, exported(t, format, r, one))
		doc, single := both[0], both[1]
		if faults := s.check(doc); len(faults) > 0 {
			t.Errorf("%s: %q", format, faults)
		}
		got := []any{doc["count"], doc["start_time"], doc["end_time"]}
		want := []any{"5000", fmt.Sprint(e.Outcome.First.UnixMilli()), fmt.Sprint(e.Time.UnixMilli())}
		if format == "ecs" {
			own, event := doc["pipeguard"].(map[string]any), doc["event"].(map[string]any)
			got, want = []any{own["count"], event["start"], event["end"], single["pipeguard"].(map[string]any)["count"]}, []any{"5000", first, last, "1"}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", format, got, want)
		}
	}
}

func TestAnUnknownFormatIsRefused(t *testing.T) {
	for _, name := range []string{"", "xml", "OCSF"} {
		if _, err := New(name, nil); err == nil {
			t.Errorf("%q is taken", name)
		}
	}
}

func TestATableWithoutRecordsHasItsHeader(t *testing.T) {
	if got := exported(t, "csv"); !strings.HasPrefix(got, "seq,time,") || strings.Count(got, "\n") != 1 {
		t.Errorf("got %q", got)
	}
}

// Where a semicolon separates cells, a comma stands before each quote, so that quotes alone hide none.
func TestNoFormulaBeginsBehindASemicolon(t *testing.T) {
	texts := []string{`a;=1+1`, `a; +1`, `a;-2+3;@SUM(1)`, "a;\t=1", `a;＝1`, `"";=1`, `a|b`, `a;b`}
	var records []query.Record
	for i, text := range texts {
		e := hostile.Event(text)
		e.Seq = uint64(i + 1) // #nosec G115 -- positive
		records = append(records, query.Record{Event: e})
	}
	out := exported(t, "csv", records...)
	for _, line := range strings.Split(strings.TrimSuffix(out, "\r\n"), "\r\n")[1:] {
		for _, cell := range strings.Split(line, ";")[1:] {
			if first := strings.TrimLeft(cell, ` "`); first == "" || strings.ContainsAny(first[:1], "=+-@\t") || strings.HasPrefix(first, "＝") || strings.HasPrefix(first, "<U+0009>") {
				t.Errorf("a cell begins with %.20q", cell)
			}
		}
	}
	table, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if err != nil || len(table) != len(texts)+1 {
		t.Fatalf("%d rows, %v", len(table), err)
	}
	for _, text := range []string{"a;b", "a|b", "a;'=1+1"} {
		if !strings.Contains(out, `"`+text) && !strings.Contains(out, text+`"`) {
			t.Errorf("%q is not quoted", text)
		}
	}
}
