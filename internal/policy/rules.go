package policy

import (
	"fmt"
	"net/url"
	"regexp"

	"github.com/open-policy-agent/opa/v1/ast"
)

// codePattern is what a rule's code may look like: PG001, ACME-17. codeForm says it in words.
var codePattern = regexp.MustCompile(`^[A-Z][A-Z0-9_-]{0,31}$`)

const codeForm = "upper-case letters, digits, - and _, at most 32, a letter first"

// ruleTable collects the rules that METADATA blocks describe, and the files that do. A code has one description: two that differ would make
// a denial say something other than what the author of the rule wrote.
func ruleTable(modules map[string]*ast.Module, inOrder []string) (rules map[string]Rule, files map[string]string, problems []Problem) {
	rules, files = map[string]Rule{}, map[string]string{}
	for _, name := range inOrder {
		for _, a := range modules[name].Annotations {
			if _, ok := a.Custom["code"]; !ok {
				continue
			}
			r := Rule{Title: a.Title, Description: a.Description}
			for _, f := range []struct {
				key string
				to  *string
			}{{"code", &r.Code}, {"severity", &r.Severity}, {"docs", &r.Docs}, {"remedy", &r.Remedy}} {
				if v, ok := a.Custom[f.key]; ok {
					if *f.to, ok = v.(string); !ok {
						problems = append(problems, at(a.Location, CodeMetadata, fmt.Sprintf("custom.%s is not a string", f.key)))
					}
				}
			}
			if r.Docs != "" && !isLink(r.Docs) {
				problems = append(problems, at(a.Location, CodeMetadata, fmt.Sprintf("custom.docs %q: want a URL that begins with https:// or http://", r.Docs)))
			}
			switch _, twice := rules[r.Code]; {
			case !codePattern.MatchString(r.Code):
				problems = append(problems, at(a.Location, CodeMetadata, fmt.Sprintf("custom.code %q: want %s", r.Code, codeForm)))
			case twice:
				problems = append(problems, at(a.Location, CodeMetadata, "a second description of code "+r.Code))
			default:
				rules[r.Code], files[r.Code] = r, name
			}
		}
	}
	return rules, files, problems
}

// isLink reports whether a text that refusals show people to read more is a link to a page.
func isLink(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.User == nil
}
