package pipeguard_test

import (
	"encoding/json"
	"os/exec"
	"testing"
)

// What the product and the programs beside its tests have in common is compiled once, if it is the same.
func TestTheToolsAreMadeOfTheProductsVersions(t *testing.T) {
	product := versions(t, "go.mod")
	for _, file := range []string{"test/tools/kubernetes/go.mod", "test/floor/go.mod"} {
		tools, common := versions(t, file), 0
		for path, version := range product {
			switch other, ok := tools[path]; {
			case ok && other != version:
				t.Errorf("%s: the product has %s, %s has %s", path, version, file, other)
			case ok:
				common++
			}
		}
		if common < 20 {
			t.Errorf("%s: %d modules in common", file, common)
		}
	}
}

// versions are those of the modules that a go.mod requires, replaced where it replaces them.
func versions(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json", file).Output()
	if err != nil {
		t.Fatal(err)
	}
	type module struct{ Path, Version string }
	var mod struct {
		Require []module
		Replace []struct{ Old, New module }
	}
	if err := json.Unmarshal(text, &mod); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, m := range mod.Require {
		out[m.Path] = m.Version
	}
	for _, r := range mod.Replace {
		out[r.Old.Path] = r.New.Version
	}
	return out
}
