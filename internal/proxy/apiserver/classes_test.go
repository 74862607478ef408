package apiserver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/google/go-cmp/cmp"
)

// classFile lists every value of every served message with what it is, for people to read.
var classFile = filepath.Join("testdata", "classes.txt")

// eachValue calls visit for every field with a value that can be reached from a message.
func eachValue(m protoreflect.MessageDescriptor, seen map[protoreflect.FullName]bool, visit func(protoreflect.FieldDescriptor)) {
	if seen[m.FullName()] {
		return
	}
	seen[m.FullName()] = true
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		inner := f.Message()
		if f.IsMap() {
			inner = f.MapValue().Message()
		}
		if holdsValue(f) {
			visit(f)
		}
		if inner != nil {
			eachValue(inner, seen, visit)
		}
	}
}

// classLine says what a field is; "unclassified" is what nobody has said anything of.
func classLine(group string, f protoreflect.FieldDescriptor) string {
	c := publishedClasses[classKey{group, f.Name()}]
	if c == "" {
		c = "unclassified"
	}
	kind := f.Kind().String()
	if f.IsMap() {
		kind = fmt.Sprintf("map of %s to %s", f.MapKey().Kind(), f.MapValue().Kind())
	} else if f.IsList() {
		kind = "list of " + kind
	}
	return fmt.Sprintf("%s %s (%s): %s", group, f.FullName(), kind, c)
}

// unread are the lines of fields, of what a group's messages hold, that are not among those that somebody has read.
func unread(read []string, group string, messages ...protoreflect.MessageDescriptor) (all, missing []string) {
	seen := map[protoreflect.FullName]bool{}
	for _, m := range messages {
		eachValue(m, seen, func(f protoreflect.FieldDescriptor) {
			line := classLine(group, f)
			all = append(all, line)
			if !slices.Contains(read, line) || strings.HasSuffix(line, "unclassified") {
				missing = append(missing, line)
			}
		})
	}
	return all, missing
}

func readClasses(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(classFile)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(strings.ReplaceAll(string(text), "\r\n", "\n")), "\n")
}

func TestEveryValueOfEveryServedMessageIsClassified(t *testing.T) {
	read := readClasses(t)
	var want []string
	for _, a := range loadAll(t) {
		for _, m := range a.Methods() {
			for _, message := range []proto.Message{m.NewRequest(), m.NewResponse(), m.hub.request.New().Interface(), m.hub.response.New().Interface()} {
				all, missing := unread(read, a.GroupVersion().Group, message.ProtoReflect().Descriptor())
				want = append(want, all...)
				for _, line := range missing {
					if !*update {
						t.Errorf("%s: classify it and, when you have read what it is for, go test ./internal/proxy/apiserver -run %s -update", line, t.Name())
					}
				}
			}
		}
	}
	slices.Sort(want)
	want = slices.Compact(want)
	if len(want) < 200 {
		t.Fatalf("only %d fields were looked at", len(want))
	}
	if *update {
		if err := os.WriteFile(classFile, []byte(strings.Join(want, "\n")+"\n"), 0o644); err != nil { //nolint:gosec // a document
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, read); diff != "" {
		t.Errorf("%s speaks of fields that are not there (-there +file):\n%s", classFile, diff)
	}
}
