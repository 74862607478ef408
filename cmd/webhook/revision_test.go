package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/test/harness"
)

// A reviewer finds the policies that decided by their revision: pipeguard review, a webhook in a cluster and one without must
// print the same for the same files.
func TestEveryPlaceHasTheSameRevisionOfTheSameFiles(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("the command is built where there is a toolchain")
	}
	dir := t.TempDir()
	params, pod := filepath.Join(dir, "parameters.yaml"), filepath.Join(dir, "pod.yaml")
	exe, err := harness.Build(t.Context(), dir, "./cmd/pipeguard")
	if err != nil {
		t.Fatal(err)
	}
	harness.Replace(t, params, "hostProcess: Warn\n")
	harness.Replace(t, pod, "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c, image: i}]}\n")
	for name, args := range map[string][]string{
		"built in":           nil,
		"with parameters":    {"--params=" + params},
		"from a directory":   {"--policy-dir=" + copyPolicy(t)},
		"both from the disk": {"--policy-dir=" + copyPolicy(t), "--params=" + params},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, _, err := newTestServer(t, args...)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				for _, e := range s.endpoints {
					_ = e.listener.Close()
				}
				_ = errors.Join(s.webhook.listener.Close(), s.records.Close())
			})
			files, err := s.policies.files()
			if err != nil {
				t.Fatal(err)
			}
			alone := revisionOf(t)(s.policies.bind(files))
			base, parameters, err := s.source.base()
			if err != nil {
				t.Fatal(err)
			}
			cluster := revisionOf(t)(assemble(base, parameters, nil, nil))

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
			if alone != cluster || alone != printed.Revision {
				t.Errorf("without a cluster %s\nin a cluster      %s\nreview            %s", alone, cluster, printed.Revision)
			}
		})
	}
}

// revisionOf returns what tells the revision that modules have once they decide.
func revisionOf(t *testing.T) func(policy.Modules, error) string {
	t.Helper()
	return func(m policy.Modules, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		engine, err := policy.New(policy.Options{BaseTested: true})
		if err != nil {
			t.Fatal(err)
		}
		active, err := engine.Activate(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		return active.Revision()
	}
}
