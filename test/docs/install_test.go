package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// commandsIn are the lines of a text's blocks of shell, each with the lines that it goes on in, by block.
func commandsIn(text string) (blocks [][]string) {
	for _, block := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
		whole := strings.ReplaceAll(block[1], "\\\n", " ")
		blocks = append(blocks, strings.Split(strings.TrimSuffix(whole, "\n"), "\n"))
	}
	return blocks
}

// helmSets are the values that a command sets, and its chart.
var (
	helmSets  = regexp.MustCompile(`--set(?:-json|-string)? ['"]?([^\s'"]+)`)
	helmChart = regexp.MustCompile(`^helm (?:install|upgrade) \S+ (\S+)`)
)

// Nobody publishes the images: whoever installs the chart as it is printed must have built and pushed one, by the line before.
func TestEveryInstallIsPrintedWithItsImage(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	installs := 0
	for name, text := range documents(t) {
		for _, block := range commandsIn(text) {
			at := slices.IndexFunc(block, func(c string) bool { return strings.HasPrefix(c, "helm install pipeguard ") })
			if at < 0 {
				continue
			}
			installs++
			var before []string
			for _, command := range block[:at] {
				command, _, _ = strings.Cut(command, "#")
				before = append(before, strings.TrimSpace(command))
			}
			want := []string{"REGISTRY=registry.example.com/pipeguard", "make image", `make push REGISTRY="$REGISTRY"`}
			if !slices.Equal(before, want) || !strings.Contains(block[at], `--set image.repository="$REGISTRY/webhook"`) {
				t.Errorf("%s: before %q stand %q, want %q and the repository of the webhook's image there", name, block[at], before, want)
			}
			for _, command := range want[1:] {
				target := strings.Fields(command)[1]
				if !regexp.MustCompile(`(?m)^` + target + `:`).Match(makefile) {
					t.Errorf("%s: the Makefile has no target %s", name, target)
				}
			}
		}
	}
	if installs < 3 {
		t.Errorf("only %d installations are printed", installs)
	}
	if !strings.Contains(string(makefile), `-push '$(REGISTRY)'`) {
		t.Error("make push takes no REGISTRY")
	}
	pushed := read(t, filepath.Join(root, "hack/image"), "archive.go")["hack/image/archive.go"]
	if !strings.Contains(pushed, `var images = []string{"webhook", "node"}`) {
		t.Error("hack/image pushes no image of the name that is installed")
	}
}

func TestEveryValueThatCommandsSetExists(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "charts/pipeguard/values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := yaml.Unmarshal(text, &values); err != nil {
		t.Fatal(err)
	}
	count := 0
	for name, text := range documents(t) {
		for _, block := range commandsIn(text) {
			for _, command := range block {
				chart := helmChart.FindStringSubmatch(command)
				if chart == nil {
					continue
				}
				if _, err := os.Stat(filepath.Join(root, chart[1], "Chart.yaml")); err != nil {
					t.Errorf("%s: there is no chart %s", name, chart[1])
				}
				for _, set := range helmSets.FindAllStringSubmatch(command, -1) {
					for _, assignment := range strings.Split(set[1], ",") {
						count++
						if path, _, _ := strings.Cut(assignment, "="); !hasValue(values, path) {
							t.Errorf("%s: the chart has no value %s: %s", name, path, command)
						}
					}
				}
			}
		}
	}
	if count < 5 {
		t.Errorf("only %d values were found", count)
	}
}

// hasValue says whether values have a path, or a mapping of the user's own around it.
func hasValue(values map[string]any, path string) bool {
	key, rest, isDeep := strings.Cut(path, ".")
	value, ok := values[key]
	below, isMapping := value.(map[string]any)
	switch {
	case !ok:
		return false
	case !isDeep, isMapping && len(below) == 0:
		return true
	}
	return isMapping && hasValue(below, rest)
}

func TestTheCheckOfValuesSeesUnknownOnes(t *testing.T) {
	values := map[string]any{"image": map[string]any{"tag": ""}, "config": map[string]any{}}
	for path, isGood := range map[string]bool{
		"image": true, "image.tag": true, "config.audit.log": true, "image.name": false, "images": false, "image.tag.x": false, "": false,
	} {
		if hasValue(values, path) != isGood {
			t.Errorf("%q: %t", path, !isGood)
		}
	}
	got := commandsIn("```sh\na \\\n  --set b=c\nd\n```\ntext\n```yaml\ne: f\n```\n")
	if len(got) != 1 || !slices.Equal(got[0], []string{"a    --set b=c", "d"}) {
		t.Errorf("%q", got)
	}
}
