//go:build !windows

package integration

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// varying is what differs from run to run.
var varying = regexp.MustCompile(`(Decision |sha256:|until )[a-zA-Z0-9:-]+`)

// Each file of testdata/kubectl is applied as a user would, and what kubectl says is compared with the file beside it.
func TestWhatKubectlShows(t *testing.T) {
	const space = "shop"
	if err := at(t).api.EnsureNamespace(t.Context(), space); err != nil {
		t.Fatal(err)
	}
	ungoverned(t)
	p := pipePolicy("volumes", []v1alpha1.PipePattern{"csi-proxy-volume-v1"}, v1alpha1.Subject{
		Name: "driver", Namespace: space, Containers: []string{"driver"},
		Owner: "storage team", Reason: "a migration", ExpiresAt: new(metav1.NewTime(time.Now().Add(25 * time.Hour))),
	})
	p.Spec.Admission.Requirement = v1alpha1.RequireSubjectOrPrivileged
	ready(t, p)
	kubectl, err := at(t).api.Kubectl(shared.tools, at(t).api.Config)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("testdata/kubectl/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			stdout, stderr, code, err := kubectl.Run(t.Context(), "", "apply", "--dry-run=server", "-n", space, "-f", file)
			if err != nil {
				t.Fatal(err)
			}
			got := varying.ReplaceAllString(fmt.Sprintf("%s%sexit code %d\n", stdout, stderr, code), "${1}(varies)")
			golden := strings.TrimSuffix(file, ".yaml") + ".txt"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("differs from %s (-want +got); after a change that users should see, run with -update:\n%s", golden, diff)
			}
		})
	}
}

// The columns answer: what does it do, is it enforced everywhere, is it violated?
func TestWhatKubectlListsOfAPolicy(t *testing.T) {
	ungoverned(t)
	ready(t, pipePolicy("volumes", []v1alpha1.PipePattern{"csi-proxy-volume-v1"}, subject(drivers)), latestModule())
	kubectl, err := at(t).api.Kubectl(shared.tools, at(t).api.Config)
	if err != nil {
		t.Fatal(err)
	}
	for resource, want := range map[string][]string{
		"pipepolicies":  {"NAME", "ACTION", "READY", "ENFORCED ON", "VIOLATIONS", "EXPIRED", "AGE", "volumes", "Deny", "True", "1/1"},
		"policymodules": {"NAME", "READY", "COMPILED", "TESTS", "ENFORCED ON", "AGE", "latest", "True", "1/1"},
		"pipeguard":     {"pipepolicy.pipeguard.dev/volumes", "policymodule.pipeguard.dev/latest"},
	} {
		stdout, stderr, code, err := kubectl.Run(t.Context(), "", "get", resource)
		if err != nil || code != 0 {
			t.Fatalf("exit code %d, %v: %s", code, err, stderr)
		}
		for _, word := range want {
			if !strings.Contains(stdout, word) {
				t.Errorf("get %s lacks %q:\n%s", resource, word, stdout)
			}
		}
	}
}
