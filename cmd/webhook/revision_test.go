package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/pipeguard/pipeguard/internal/policy"
)

// A reviewer finds the policies that decided by their revision: pipeguard review, a webhook in a cluster and one without must
// print the same for the same files.
func TestEveryPlaceHasTheSameRevisionOfTheSameFiles(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("the command is built where there is a toolchain")
	}
	dir := t.TempDir()
	exe, params, pod := filepath.Join(dir, "pipeguard.exe"), filepath.Join(dir, "parameters.yaml"), filepath.Join(dir, "pod.yaml")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", exe, "../pipeguard")
	build.Env = append(build.Environ(), "CGO_ENABLED=0") // as other tests build it, so that it is compiled once
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	write(t, params, "hostProcess: Warn\n")
	write(t, pod, "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c, image: i}]}\n")
	for name, args := range map[string][]string{
		"built in":           nil,
		"with parameters":    {"--params=" + params},
		"from a directory":   {"--policy-dir=" + copyPolicy(t)},
		"both from the disk": {"--policy-dir=" + copyPolicy(t), "--params=" + params},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, args...)
			active, _ := p.engine.Active()

			base, parameters, err := p.source.base()
			if err != nil {
				t.Fatal(err)
			}
			modules, err := assemble(base, parameters, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			engine, err := policy.New(policy.Options{BaseTested: true})
			if err != nil {
				t.Fatal(err)
			}
			cluster, err := engine.Activate(t.Context(), modules)
			if err != nil {
				t.Fatal(err)
			}

			review := exec.CommandContext(t.Context(), exe, append([]string{"review", "-o=json", "-f=" + pod}, args...)...)
			review.Stderr = os.Stderr
			out, err := review.Output()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			var printed struct{ Revision string }
			if err := json.Unmarshal(out, &printed); err != nil {
				t.Fatal(err)
			}
			if active.Revision() != cluster.Revision() || active.Revision() != printed.Revision {
				t.Errorf("without a cluster %s\nin a cluster      %s\nreview            %s", active.Revision(), cluster.Revision(), printed.Revision)
			}
		})
	}
}
