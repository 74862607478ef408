package apiserver

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

var update = flag.Bool("update", false, "write docs/compatibility.md and testdata/classes.txt")

// compatibilityFile is where the document is kept.
var compatibilityFile = filepath.Join("..", "..", "..", "docs", "compatibility.md")

func TestTheCompatibilityDocumentIsOfThisCode(t *testing.T) {
	want := compatibility(t)
	if *update {
		if err := os.WriteFile(compatibilityFile, []byte(want), 0o644); err != nil { //nolint:gosec // a document
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(compatibilityFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is stale: go test ./internal/proxy/apiserver -run %s -update", compatibilityFile, t.Name())
	}
}

// compatibility writes the document from the descriptors, the tables and the handwritten texts about behaviour.
func compatibility(t *testing.T) string {
	apis := loadAll(t)
	methods := 0
	for _, a := range apis {
		methods += len(a.Methods())
	}
	var b strings.Builder
	fmt.Fprintf(&b, compatibilityHead, len(apis), methods)
	for _, g := range publishedGroups {
		var versions []*API
		for _, a := range apis {
			if a.GroupVersion().Group == g.name {
				versions = append(versions, a)
			}
		}
		fmt.Fprintf(&b, "\n## %s\n\n", g.name)
		writeOperations(&b, g, versions)
		writeFields(&b, g, versions)
		writeDifferences(&b, g.name)
	}
	return b.String()
}

// writeOperations says under which name each version has an operation.
func writeOperations(b *strings.Builder, g groupTable, versions []*API) {
	b.WriteString("| operation | changes the host |")
	for _, a := range versions {
		fmt.Fprintf(b, " %s |", a.GroupVersion().Version)
	}
	b.WriteString("\n|---|---|" + strings.Repeat("---|", len(versions)) + "\n")
	for _, op := range g.operations {
		changes := "yes"
		if op.readOnly {
			changes = "no"
		}
		fmt.Fprintf(b, "| %s | %s |", op.name, changes)
		for _, a := range versions {
			cell := "–"
			for _, m := range a.Methods() {
				switch {
				case m.Operation.Name != op.name:
				case m.Name == op.name:
					cell = "yes"
				default:
					cell = m.Name
				}
			}
			fmt.Fprintf(b, " %s |", cell)
		}
		b.WriteString("\n")
	}
}

// writeFields says what becomes of fields that are not the hub's.
func writeFields(b *strings.Builder, g groupTable, versions []*API) {
	if len(g.fields) == 0 {
		return
	}
	b.WriteString("\nFields of older versions that differ from those of the newest:\n\n| versions | method | field | treatment |\n|---|---|---|---|\n")
	for _, row := range g.fields {
		of, methods := whereRow(row, versions)
		name, becomes := "`"+row.served+"` of the "+string(row.part), ""
		switch {
		case row.served == "":
			name, becomes = "`"+row.hub+"` of the newest "+string(row.part), "missing: "+row.why
		case row.entries != nil:
			var entries []string
			for _, e := range row.entries {
				entries = append(entries, fmt.Sprintf("`%s` is `%s`", e.key, e.hub))
			}
			becomes = "a map that always has both: " + strings.Join(entries, ", ")
		case row.hub == "":
			becomes = "left out: " + row.why
		case row.served == row.hub:
			becomes = "keys are decimal texts"
		default:
			becomes = "is `" + row.hub + "`" + map[conversion]string{asDecimal: ", a number; a text that is not a number, or does not fit 32 bits, is refused", asWider: ", made wider"}[row.as]
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", strings.Join(of, ", "), strings.Join(methods, ", "), name, becomes)
	}
}

// whereRow returns the versions and methods to which a row has something to say.
func whereRow(row fieldRow, versions []*API) (of, methods []string) {
	for _, a := range versions {
		for _, m := range a.Methods() {
			if row.method != anyMethod && row.method != m.Name {
				continue
			}
			served, hub := m.served.request, m.hub.request
			if row.part == inResponse {
				served, hub = m.served.response, m.hub.response
			}
			at := fieldAt(served.Descriptor(), row.served)
			switch {
			case row.served == "":
				if fieldAt(served.Descriptor(), row.hub) != nil {
					continue
				}
			case at == nil:
				continue
			case row.served == row.hub: // the names are one: only the keys can differ
				if at.MapKey().Kind() == fieldAt(hub.Descriptor(), row.hub).MapKey().Kind() {
					continue
				}
			}
			if !slices.Contains(of, a.GroupVersion().Version) {
				of = append(of, a.GroupVersion().Version)
			}
			if !slices.Contains(methods, m.Name) {
				methods = append(methods, m.Name)
			}
		}
	}
	return of, methods
}

// fieldAt finds a field by its path, through messages and the values of maps.
func fieldAt(m protoreflect.MessageDescriptor, path string) protoreflect.FieldDescriptor {
	name, rest, deeper := strings.Cut(path, ".")
	f := m.Fields().ByName(protoreflect.Name(name))
	switch {
	case f == nil || !deeper:
		return f
	case f.IsMap() && f.MapValue().Message() != nil:
		return fieldAt(f.MapValue().Message(), rest)
	case !f.IsMap() && f.Message() != nil:
		return fieldAt(f.Message(), rest)
	}
	return nil
}

func writeDifferences(b *strings.Builder, group string) {
	b.WriteString("\nDifferences in behaviour:\n\n| operation | csi-proxy.exe | here |\n|---|---|---|\n")
	for _, d := range differences[group] {
		fmt.Fprintf(b, "| %s | %s | %s |\n", strings.Join(d.operations, ", "), d.there, d.here)
	}
}

// The document says something of every operation that changes the host, and names only operations that exist.
func TestTheCompatibilityDocumentSpeaksOfEveryChange(t *testing.T) {
	for _, g := range publishedGroups {
		said := map[string]bool{}
		for _, d := range differences[g.name] {
			for _, op := range d.operations {
				said[op] = true
				if !slices.ContainsFunc(g.operations, func(row operationRow) bool { return row.name == op }) {
					t.Errorf("%s has no operation %s", g.name, op)
				}
			}
		}
		for _, op := range g.operations {
			if !op.readOnly && !said[op.name] {
				t.Errorf("nothing is said about %s %s", g.name, op.name)
			}
		}
	}
	if len(differences) != len(publishedGroups) {
		t.Errorf("%d groups are spoken of, and there are %d", len(differences), len(publishedGroups))
	}
}

// Every field of every message, in both directions, either arrives or is in a row that says why it does not.
func TestEveryFieldIsMappedOrLeftOutForAReason(t *testing.T) {
	book := newRowBook(published())
	fields := 0
	for _, a := range loadAll(t) {
		for _, m := range a.Methods() {
			for _, side := range []struct {
				part        part
				served, hub protoreflect.MessageType
			}{{inRequest, m.served.request, m.hub.request}, {inResponse, m.served.response, m.hub.response}} {
				d := side.served.Descriptor()
				for i := range d.Fields().Len() {
					f := d.Fields().Get(i)
					fields++
					row, ok := book.field(a.GroupVersion().Group, m.Name, side.part, string(f.Name()), "")
					if ok && row.hub == "" && row.entries == nil && row.why == "" {
						t.Errorf("%s is left out without a reason", f.FullName())
					}
					if got := arrives(t, m, side.part, f); got == (ok && row.why != "") {
						t.Errorf("%s: arrives %v, and a row says why it does not: %v", f.FullName(), got, row.why != "")
					}
				}
			}
		}
	}
	if fields < 220 {
		t.Errorf("only %d fields were looked at", fields)
	}
}

// arrives says whether a field that is set, and no other, is seen on the other side.
func arrives(t *testing.T, m Method, in part, served protoreflect.FieldDescriptor) bool {
	t.Helper()
	if in == inRequest {
		request := m.NewRequest()
		for _, name := range []protoreflect.Name{"disk_id", "diskID"} {
			if disk := request.ProtoReflect().Descriptor().Fields().ByName(name); disk != nil {
				request.ProtoReflect().Set(disk, protoreflect.ValueOfString("0"))
			}
		}
		fillField(request, served)
		call, err := m.Call(request)
		if err != nil {
			t.Fatalf("%s: %v", served.FullName(), err)
		}
		return proto.Size(call.Request) > 0
	}
	full := m.hub.response.New().Interface()
	fill(full)
	if served.ContainingMessage() == m.hub.response.Descriptor() {
		return true
	}
	response, err := m.respond(full)
	if err != nil {
		t.Fatalf("%s: %v", served.FullName(), err)
	}
	return response.ProtoReflect().Has(served)
}
