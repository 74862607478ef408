package docs

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/core/access"
)

var (
	ruleCode   = regexp.MustCompile(`(?m)^#   code: (\w+)$`)
	ruleDocs   = regexp.MustCompile(`(?m)^#   docs: (\S+)$`)
	metric     = regexp.MustCompile(`\b((?:pipeguard|grpc_server)_[a-z_]*[a-z])\b`)
	metricName = regexp.MustCompile(`"((?:pipeguard|grpc_server)_[a-z_]*[a-z])"`)
)

func TestDocumentsAndProgramsHaveTheSameMetrics(t *testing.T) {
	inDocs := words(documents(t), metric)
	inSource := words(sources(t, "cmd", "internal"), metricName)
	if len(inSource) < 80 {
		t.Errorf("only %d metrics were found in the source", len(inSource))
	}
	differ(t, inDocs, inSource, "is named, but no program has this metric")
	differ(t, inSource, inDocs, "is a metric that no document names")
	guides := documents(t)
	delete(guides, "README.md")
	delete(guides, "CHANGELOG.md")
	differ(t, inSource, words(guides, metric), "is a metric that no guide explains")
}

func TestDocumentsAndPoliciesHaveTheSameRules(t *testing.T) {
	rego := map[string]string{}
	for name, text := range read(t, filepath.Join(root, "policies"), ".rego") {
		if !strings.HasSuffix(name, "_test.rego") {
			rego[name] = text
		}
	}
	inPolicies := words(rego, ruleCode)
	for _, text := range sources(t, "internal") { // codes without a rule: no decision, failed advice
		for _, match := range regexp.MustCompile(`"(PG99\d)"`).FindAllStringSubmatch(text, -1) {
			inPolicies[match[1]] = "internal"
		}
	}
	rules := map[string]string{"docs/rules.md": documents(t)["docs/rules.md"]}
	headings := words(rules, regexp.MustCompile(`(?m)^## (P[GN]\d+)$`))
	differ(t, headings, inPolicies, "has a heading, but there is no such rule")
	differ(t, inPolicies, headings, "is a rule without a heading in docs/rules.md")
	differ(t, headings, words(rules, regexp.MustCompile(`(?m)^\| \[(P[GN]\d+)\]`)), "is missing in the table")
	differ(t, words(documents(t), regexp.MustCompile(`\b(PG\d{3})\b`)), inPolicies, "is named, but there is no such rule")
}

func TestEveryParameterIsDocumentedWhereParametersAre(t *testing.T) {
	source := sources(t, "internal/admission")
	keys := words(source, regexp.MustCompile(`(?m)^\s+\w+ +\S+ +.json:"(guardedPipes|requirement|allowedNamespaces|hostProcess)\b`))
	if len(keys) == 0 {
		t.Fatal("no parameters were found in internal/admission")
	}
	for _, name := range []string{"README.md", "docs/authors-guide.md"} {
		inTable := words(map[string]string{name: documents(t)[name]}, regexp.MustCompile("(?m)^\\| `(\\w+)` \\|"))
		differ(t, keys, inTable, "is a parameter that a table of "+name+" lacks")
	}
}

// The reference of the API and the guide to callers say of the same patterns of images what these cover.
func TestDocumentsSayWhatPatternsOfImagesCover(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("0", 64)
	for _, c := range []struct {
		said, pattern, image string
		covers               bool
	}{
		{`either .reg/driver:v1\.2. nor .reg/driver:v1\.\*. covers .reg/driver:v1\.2@`, "reg/driver:v1.2", "reg/driver:v1.2" + digest, false},
		{`either .reg/driver:v1\.2. nor .reg/driver:v1\.\*. covers .reg/driver:v1\.2@`, "reg/driver:v1.*", "reg/driver:v1.2" + digest, false},
		{`.reg/driver:\*. covers any tag, with a digest behind it too`, "reg/driver:*", "reg/driver:v1.2" + digest, true},
		{`.reg/driver@\*. any digest without a tag`, "reg/driver@*", "reg/driver" + digest, true},
		{`.reg/driver@\*. any digest without a tag`, "reg/driver@*", "reg/driver:v1.2" + digest, false},
	} {
		for _, page := range []string{"docs/api.md", "docs/callers.md"} {
			if !regexp.MustCompile(c.said).MatchString(strings.ReplaceAll(documents(t)[page], "<br />", " ")) {
				t.Errorf("%s does not say %s", page, c.said)
			}
		}
		pattern, err := access.ParseImage(c.pattern)
		if err != nil || access.CoversImage(pattern, c.image) != c.covers {
			t.Errorf("%s covers %s: %t (%v)", c.pattern, c.image, !c.covers, err)
		}
	}
}

// What documents show of flags must be there. Each line is taken to speak of the programs that it names, else of all.
func TestEveryFlagThatDocumentsNameExists(t *testing.T) {
	known := map[string][]string{}
	for _, program := range []string{"webhook", "proxy", "pipeguard"} {
		known[program] = flagsOf(sources(t, "cmd/"+program))
		if len(known[program]) < 10 {
			t.Fatalf("only %d flags of %s were found", len(known[program]), program)
		}
	}
	for _, program := range []string{"test/bench", "test/bench/node", "test/bench/reading", "test/bench/review"} {
		known[program] = append(flagsOf(sources(t, program)), "only") // that test/windows/bench.sh hands on
	}
	count := 0
	for name, text := range documents(t) {
		if name == "docs/api.md" { // patterns of names, not flags
			continue
		}
		for line := range strings.Lines(text) {
			for _, flag := range flagsIn(line) {
				count++
				if !slices.Contains(foreign, flag) && !isKnown(known, line, flag) {
					t.Errorf("%s: no program has the flag %s: %s", name, flag, line)
				}
			}
		}
	}
	if count < 50 {
		t.Errorf("only %d flags were found in the documents", count)
	}
}

func TestTheCheckOfFlagsSeesUnknownOnes(t *testing.T) {
	known := map[string][]string{"webhook": {"params"}, "proxy": {"config"}, "pipeguard": {"params", "o"}}
	for line, isGood := range map[string]bool{
		"webhook --params x": true, "`--config FILE`": true, "proxy.exe --config x": true, "pipeguard review -o json": true,
		"webhook --config x": false, "proxy --params x": false, "`--frobnicate`": false, "pipeguard review --subpth x": false,
	} {
		flags := flagsIn(line)
		if len(flags) != 1 || isKnown(known, line, flags[0]) != isGood {
			t.Errorf("%q: flags %q, want one, known: %t", line, flags, isGood)
		}
	}
	if got := flagsIn("a well-known word, sc.exe - and a-b, ---|---"); len(got) != 0 {
		t.Errorf("flags where there are none: %q", got)
	}
}

// foreign are flags of other programs that documents show: go, curl, jq, PowerShell, helm, kubectl, hack/image.
var foreign = []string{
	"run", "tags", "dry-run", "bench", "benchtime", "cpu", "count", "cacert", "data", "c", "H", "S", "X", "schema", "p", "sS", "s", "r", "help",
	"force", "audit", "timeout", "n", "o", "f", "e", "create-namespace", "set", "reset-then-reuse-values", "reuse-values", "server-side", "force-conflicts", "force-replace", "take-ownership", "wait", "set-string", "push", "insecure", "from-file", "raw", "rawfile", "arg", "j", "benchmem", "l", "k", "A", "ItemType", "Name", "ProviderName", "StartupType", "BinaryPathName",
}

var (
	flagUse    = regexp.MustCompile("(?:^|[\\s`(\\[|\"])--?([a-zA-Z][a-zA-Z_-]*)")
	flagAsked  = regexp.MustCompile(`(?:\.(?:\w*Var|\w*VarP|Func|Bool|Int|String|StringArray|BoolP)|AddChoice|\bText|\badd)\((?:&?[\w.]+, ){0,2}"([a-z][a-z_-]*)"`)
	flagTable  = regexp.MustCompile(`(?s)filterFlags = .*?\n}\n`)
	flagString = regexp.MustCompile(`"([a-z][a-z_]*[a-z]|v)"`)
)

func flagsIn(line string) []string {
	var names []string
	for _, match := range flagUse.FindAllStringSubmatch(line, -1) {
		names = append(names, strings.TrimRight(match[1], "-_"))
	}
	return names
}

func flagsOf(files map[string]string) []string {
	var names []string
	for name, text := range files {
		for _, match := range flagAsked.FindAllStringSubmatch(text, -1) {
			names = append(names, match[1])
		}
		for _, match := range regexp.MustCompile(`VarP\([^)]*?"[a-z-]+", "(\w)"`).FindAllStringSubmatch(text, -1) {
			names = append(names, match[1])
		}
		for _, match := range regexp.MustCompile(`(?m)^\s+\{"([a-z]+)", `).FindAllStringSubmatch(flagTable.FindString(text), -1) {
			names = append(names, match[1])
		}
		if strings.HasSuffix(name, "klog.go") { // a table of csi-proxy's flags
			for _, match := range flagString.FindAllStringSubmatch(text, -1) {
				names = append(names, match[1])
			}
		}
		if strings.Contains(text, "privacyFlag = ") {
			names = append(names, "require-privacy")
		}
	}
	return append(names, "help", "version")
}

func isKnown(known map[string][]string, line, flag string) bool {
	named := false
	for program, flags := range known {
		if strings.Contains(line, program+" ") || strings.Contains(line, program+".exe ") {
			named = true
			if slices.Contains(flags, flag) {
				return true
			}
		}
	}
	if named {
		return false
	}
	for _, flags := range known {
		if slices.Contains(flags, flag) {
			return true
		}
	}
	return false
}
