package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/caller"
)

const root = "../.."

func read(t *testing.T) *Object {
	t.Helper()
	record, err := Read(root)
	if err != nil {
		t.Fatal(err)
	}
	return record
}

func TestTheReferenceIsThatOfTheSource(t *testing.T) {
	files, err := Make(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		there, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.Split(string(there), "\n"), strings.Split(string(want), "\n")); diff != "" {
			t.Errorf("%s is not what %s says; run make generate: %s", name, Source, diff)
		}
	}
}

func TestWritingTheReferenceNeedsItsDirectory(t *testing.T) {
	if err := Write(root, t.TempDir()); err == nil {
		t.Error("written into no directory")
	}
	out := t.TempDir()
	if err := os.Mkdir(filepath.Join(out, "docs"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Write(root, out); err != nil {
		t.Error(err)
	}
	if err := Write(out, out); err == nil {
		t.Error("made from no source")
	}
}

// fields are those of a Go type as a program sees them: not by their comments.
func fields(t reflect.Type, path string) (out []string) {
	for _, f := range reflect.VisibleFields(t) {
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		place := strings.TrimPrefix(path+"."+name, ".")
		out = append(out, place+" "+map[bool]string{true: "optional", false: "always"}[rest != ""])
		inner := f.Type
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct && inner != reflect.TypeFor[time.Time]() {
			out = append(out, fields(inner, place)...)
		}
	}
	return out
}

func (o *Object) places() (out []string) {
	for _, f := range o.Fields {
		place := strings.TrimPrefix(o.Path+"."+f.Name, ".")
		out = append(out, place+" "+map[bool]string{true: "optional", false: "always"}[f.Optional])
		if f.Object != nil {
			out = append(out, f.Object.places()...)
		}
	}
	return out
}

func TestTheReferenceHasEveryFieldInItsOrder(t *testing.T) {
	if diff := cmp.Diff(fields(reflect.TypeFor[audit.Event](), ""), read(t).places()); diff != "" {
		t.Error(diff)
	}
}

func TestWordsAreThoseOfWhoeverWritesThem(t *testing.T) {
	record := read(t)
	who, decision := record.field("who").Object, record.field("decision").Object
	for name, c := range map[string]struct {
		field *Field
		want  []string
	}{
		"assurance": {who.field("assurance"), []string{
			string(caller.AssurancePod), string(caller.AssuranceProcess), string(caller.AssuranceSID), string(caller.AssuranceNone), "apiserver",
		}},
		"mode":        {decision.field("mode"), []string{string(access.Enforce), string(access.LogOnly)}},
		"effect":      {decision.field("effect"), []string{string(access.Allow), string(access.Deny)}},
		"token_state": {who.field("token_state"), []string{audit.TokenStale, audit.TokenUnbound, audit.TokenSeveral}},
		"pruned":      {record.field("log").Object.field("pruned").Object.field("reason"), []string{audit.CauseAge, audit.CauseSize}},
	} {
		if diff := cmp.Diff(c.want, texts(c.field.Values)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestEachTypeHasItsStages(t *testing.T) {
	record := read(t)
	for _, kind := range record.field("type").Values {
		if !slices.ContainsFunc(record.field("stage").Values, func(stage Value) bool { return slices.Contains(stage.Of, kind.Text) }) {
			t.Errorf("no stage is of type %s", kind.Text)
		}
	}
	for _, stage := range record.field("stage").Values {
		for _, kind := range stage.Of {
			if !slices.Contains(texts(record.field("type").Values), kind) {
				t.Errorf("%s is of type %s, which there is not", stage.Text, kind)
			}
		}
	}
}

// spoiled reads the source with one text in place of another.
func spoiled(t *testing.T, old, with string) error {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(Source)))
	if err != nil {
		t.Fatal(err)
	}
	source := strings.ReplaceAll(string(text), "\r\n", "\n")
	if strings.Count(source, old) != 1 {
		t.Fatalf("%q stands %d times in the source", old, strings.Count(source, old))
	}
	dir := t.TempDir()
	file := filepath.Join(dir, filepath.FromSlash(Source))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(source, old, with, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Read(dir)
	return err
}

func TestAFieldWithoutACommentIsAFault(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, filepath.FromSlash(Source)), nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	ast.Inspect(file, func(n ast.Node) bool {
		f, ok := n.(*ast.Field)
		if !ok || f.Tag == nil {
			return true
		}
		count++
		var comment strings.Builder
		for _, line := range f.Doc.List {
			if !strings.HasPrefix(line.Text, "//record:") {
				comment.WriteString("\t" + line.Text + "\n")
			}
		}
		if err := spoiled(t, comment.String(), ""); err == nil || !strings.Contains(err.Error(), "."+f.Names[0].Name+" has no comment") {
			t.Errorf("%s without its comment: %v", f.Names[0].Name, err)
		}
		return true
	})
	if count < 60 {
		t.Errorf("%d fields", count)
	}
}

func TestASourceThatIsNotUnderstoodIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ old, with, want string }{
		"no Go":                         {"package audit", "package", "expected"},
		"a type without a comment":      {"// Corr ties records of different logs together.\n", "", "type Corr has no comment"},
		"a constant without a comment":  {" // refused by a rule\n", "\n", "ResultDenied has no comment"},
		"an unknown directive":          {"//record:values Result", "//record:vocabulary Result", "Outcome.Result: unknown directive vocabulary"},
		"an unknown vocabulary":         {"//record:values Result", "//record:values Results", "no constants Results"},
		"an unknown form":               {"//record:is code", "//record:is uuid", "unknown form uuid"},
		"a bound that is none":          {"//record:max 4294967295", "//record:max many", `max "many"`},
		"a directive of a constant":     {"//record:of request admission", "//record:when request", "StageResponseComplete: unknown directive when"},
		"a type that JSON has not":      {"PID uint32", "PID complex128", "type complex128 is missing"},
		"a type of another package":     {"Start time.Time", "Start time.Month", "WhoProcess.Start is of a type that records do not have"},
		"a field without a name":        {"`json:\"admission_uid,omitempty\"`", "`json:\",omitempty\"`", "Corr.AdmissionUID has no name"},
		"a field without a tag":         {"`json:\"admission_uid,omitempty\"`", "", "type Corr: every field has"},
		"an embedded type":              {"Params json.RawMessage", "json.RawMessage", "type What: every field has"},
		"a type that is part of none":   {"Where *Where", "Where *Corr", "type Where is part of no record"},
		"a type that is held twice":     {"Where *Where", "Where *Corr", "type Corr is missing, or is held twice"},
		"a record that is not there":    {"type Event struct", "type Events struct", "type Event is missing"},
		"a map":                         {"Redacted []string", "Redacted map[string]string", "What.Redacted is of a type"},
		"a comment of a directive only": {"	// Groups are the groups of the user.\n", "", "WhoUser.Groups has no comment"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := spoiled(t, c.old, c.with); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
