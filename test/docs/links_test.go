package docs

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#{1,6} +(.+?)\s*$`)
	fence   = regexp.MustCompile("(?ms)^```.*?^```$")
	code    = regexp.MustCompile("`[^`\n]*`")
	inWord  = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

func TestEveryLinkLeadsSomewhere(t *testing.T) {
	texts := documents(t)
	count := 0
	for name, text := range texts {
		for _, target := range links(text) {
			count++
			if fault := follow(texts, name, target); fault != "" {
				t.Errorf("%s: %s", name, fault)
			}
		}
	}
	if count < 30 {
		t.Errorf("only %d links were found", count)
	}
}

// The messages of the default policy send people to these addresses.
func TestEveryRuleLinksToItsHeading(t *testing.T) {
	const page = "https://github.com/pipeguard/pipeguard/blob/main/docs/rules.md#"
	count := 0
	for name, text := range read(t, filepath.Join(root, "policies"), ".rego") {
		for _, block := range strings.Split(text, "# METADATA")[1:] {
			block, _, _ = strings.Cut(block, "\n\n")
			codeOf, docs := ruleCode.FindStringSubmatch(block), ruleDocs.FindStringSubmatch(block)
			if codeOf == nil {
				continue
			}
			count++
			if want := page + strings.ToLower(codeOf[1]); docs == nil || docs[1] != want {
				t.Errorf("%s: %s has the link %q, want %q", name, codeOf[1], docs, want)
			}
		}
	}
	if count < 7 {
		t.Errorf("only %d rules were found", count)
	}
	differ(t, words(read(t, filepath.Join(root, "policies"), ".rego"), regexp.MustCompile(`docs/rules\.md#(\w+)`)),
		anchors(documents(t)["docs/rules.md"]), "is no heading of docs/rules.md")
}

func TestTheCheckOfLinksSeesBrokenOnes(t *testing.T) {
	texts := map[string]string{
		"README.md":      "# One\n",
		"docs/a.md":      "# A `b` c!\n\n```\n# not a heading\n```\n\n## Same\n\n## Same\n",
		"docs/adr/x.md":  "# X\n",
		"docs/README.md": "",
	}
	for target, isGood := range map[string]bool{
		"https://example.com/": true, "a.md": true, "a.md#a-b-c": true, "#a-b-c": true, "#same": true, "#same-1": true,
		"../README.md#one": true, "adr/x.md": true, "../Makefile": true, "../policies": true,
		"b.md": false, "a.md#A-b-c": false, "#same-2": false, "#not-a-heading": false, "../README.md#two": false, "/README.md": false,
		"../../outside.md": false, "../Makefile#help": false, "": false,
	} {
		if fault := follow(texts, "docs/a.md", target); (fault == "") != isGood {
			t.Errorf("follow %q: %q, want good %t", target, fault, isGood)
		}
	}
	if got := links("[a](b.md) `[c](d.md)` [e](f.md#g)\n```\n[h](i.md)\n```\n"); len(got) != 2 {
		t.Errorf("links outside code: %q, want two", got)
	}
}

// links returns the targets of a document's links; code shows links, it has none.
func links(text string) []string {
	var targets []string
	text = code.ReplaceAllString(fence.ReplaceAllString(text, ""), "")
	for _, match := range link.FindAllStringSubmatch(text, -1) {
		targets = append(targets, match[1])
	}
	return targets
}

// follow returns what is wrong with a link in the document from; links to other places are not followed.
func follow(texts map[string]string, from, target string) string {
	if strings.HasPrefix(target, "https://") {
		return ""
	}
	file, anchor, hasAnchor := strings.Cut(target, "#")
	to := from
	if file != "" {
		to = path.Join(path.Dir(from), file)
	}
	if target == "" || path.IsAbs(file) || to == ".." || strings.HasPrefix(to, "../") {
		return fmt.Sprintf("link %q leaves the repository", target)
	}
	text, isText := texts[to]
	if !isText {
		if _, err := os.Stat(filepath.Join(root, to)); err != nil {
			return fmt.Sprintf("link %q: there is no %s", target, to)
		}
	}
	if _, ok := anchors(text)[anchor]; hasAnchor && !ok {
		return fmt.Sprintf("link %q: %s has no such heading", target, to)
	}
	return ""
}

// anchors returns the anchors of a document's headings, made as GitHub makes them.
func anchors(text string) map[string]string {
	found := map[string]string{}
	for _, match := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		title := link.ReplaceAllString(match[1], "]")
		anchor := strings.ReplaceAll(inWord.ReplaceAllString(strings.ToLower(title), ""), " ", "-")
		unique := anchor
		for n := 1; found[unique] != ""; n++ {
			unique = fmt.Sprintf("%s-%d", anchor, n)
		}
		found[unique] = match[1]
	}
	return found
}
