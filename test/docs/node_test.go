package docs

import (
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/config"
)

// pages are those of a node's configuration.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all, of := documents(t), map[string]string{}
	for _, name := range []string{"docs/node-administrators-guide.md", "docs/callers.md", "docs/node-bundles.md", "docs/audit-log.md"} {
		if all[name] == "" {
			t.Fatalf("there is no %s", name)
		}
		of[name] = all[name]
	}
	return of
}

func TestEveryKeyOfAConfigurationIsDocumented(t *testing.T) {
	var text strings.Builder
	for _, page := range pages(t) {
		text.WriteString(page)
	}
	keys := map[string]bool{}
	keysOf(reflect.TypeFor[config.Proxy](), keys)
	if len(keys) < 60 {
		t.Fatalf("only %d keys were found", len(keys))
	}
	for key := range keys {
		if !regexp.MustCompile(`[^A-Za-z]` + regexp.QuoteMeta(key) + `[^A-Za-z]`).MatchString(text.String()) {
			t.Errorf("no page of nodes names the key %q", key)
		}
	}
}

// keysOf collects the keys of a struct and of what is in it.
func keysOf(of reflect.Type, keys map[string]bool) {
	switch of.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		keysOf(of.Elem(), keys)
	case reflect.Struct:
		for i := range of.NumField() {
			field := of.Field(i)
			if key := field.Tag.Get("yaml"); field.IsExported() && key != "" && key != "-" {
				keys[key] = true
				keysOf(field.Type, keys)
			}
		}
	}
}

// What a program says by a number or a word stands in a table that says what to do about it.
func TestTablesOfNodesHaveWhatProgramsSay(t *testing.T) {
	for name, c := range map[string]struct {
		dirs    []string
		source  string // has the word in its first group
		page    string
		heading string
	}{
		"events":             {[]string{"cmd/proxy", "internal/proxy/watch"}, `(?m)^\s+event\w+ += (\d+)\b`, "docs/node-administrators-guide.md", "## Log"},
		"reasons of bundles": {[]string{"internal/bundle"}, `(?m)^\s+Reason\w+ +Reason = "([a-z-]+)"`, "docs/node-bundles.md", "## Why a bundle is refused"},
		"reasons of tokens":  {[]string{"internal/proxy/token"}, `(?m)^\s+\w+ +Reason = "([a-z]+)"`, "docs/node-administrators-guide.md", "### Why a token is refused"},
	} {
		section := sectionOf(pages(t)[c.page], c.heading)
		said := words(sources(t, c.dirs...), regexp.MustCompile(c.source))
		if section == "" || len(said) < 8 {
			t.Errorf("%s: %d words to look for under %q of %s", name, len(said), c.heading, c.page)
		}
		for word, where := range said {
			if !regexp.MustCompile(`(?m)^\| (.*[^\w-])?` + word + `[^\w-][^|]*\|`).MatchString(section) {
				t.Errorf("%s: %s has %q, and the table under %q of %s has not", name, where, word, c.heading, c.page)
			}
		}
	}
}

func TestEveryTestThatDocumentsNameExists(t *testing.T) {
	tests := map[string]string{}
	for _, dir := range []string{"cmd", "internal", "test"} {
		maps.Copy(tests, words(read(t, filepath.Join(root, dir), "_test.go"), regexp.MustCompile(`(?m)^func (Test\w+)\(`)))
	}
	differ(t, words(documents(t), regexp.MustCompile("`(Test[A-Z]\\w+)`")), tests, "is named, but there is no such test")
}

// sectionOf is what follows a heading, to the next of its level or above.
func sectionOf(text, heading string) string {
	_, text, found := strings.Cut(text, "\n"+heading+"\n")
	if !found {
		return ""
	}
	level := strings.Count(strings.Fields(heading)[0], "#")
	end := regexp.MustCompile(`(?m)^#{1,` + string(rune('0'+level)) + `} `).FindStringIndex(text)
	if end == nil {
		return text
	}
	return text[:end[0]]
}
