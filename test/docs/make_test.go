package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestMakeHelpListsEveryTargetThatIsExplained(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("there is no make")
	}
	text, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "make", "--no-print-directory", "help")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		listed[strings.Fields(line)[0]] = true
	}
	explained := regexp.MustCompile(`(?m)^([^\s:]+):.* ## `).FindAllStringSubmatch(string(text), -1)
	if len(explained) < 10 {
		t.Fatalf("only %d targets were found", len(explained))
	}
	for _, target := range explained {
		if !listed[target[1]] {
			t.Errorf("make help does not list %s", target[1])
		}
	}
}

// Without a limit of its own the go command ends a package's tests after ten minutes, whatever they were about to say.
func TestEveryRunOfTestsHasALimit(t *testing.T) {
	files := read(t, filepath.Join(root, "hack"), ".sh")
	for dir, suffix := range map[string]string{"test": ".sh", ".ci": "run"} {
		for name, text := range read(t, filepath.Join(root, dir), suffix) {
			files[name] = text
		}
	}
	text, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	files["Makefile"] = string(text)
	runs := 0
	for name, text := range files {
		for line := range strings.Lines(text) {
			line, _, _ = strings.Cut(" "+line, " # ")
			if !strings.Contains(line, "go test ") || strings.Contains(line, " -c ") { // which only compiles
				continue
			}
			if runs++; !strings.Contains(line, " -timeout ") {
				t.Errorf("%s: no -timeout: %s", name, strings.TrimSpace(line))
			}
		}
	}
	if runs < 7 {
		t.Errorf("only %d runs were found", runs)
	}
}
