package reviewcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/policysource"
	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/policyset"
	"github.com/pipeguard/pipeguard/test/clitest"
)

// fakeCluster is a cluster without an API server. The zero value is one that cannot be reached.
type fakeCluster struct {
	sources   *policyset.Sources
	revisions []string // none: they cannot be read
	faults    error
	objects   map[string]string // JSON by namespace/resource/name

	connected, kubeconfig string
}

func (f *fakeCluster) AddFlags(cmd *cobra.Command) {
	for _, name := range clusterFlags {
		cli.Text(cmd, &f.kubeconfig, name, "", "")
	}
}

func (f *fakeCluster) Connect(_ context.Context, namespace string) (Live, error) {
	if f.sources == nil {
		return nil, errors.New("there is no kubeconfig")
	}
	f.connected = namespace
	return fakeLive{f}, nil
}

type fakeLive struct{ *fakeCluster }

func (f fakeLive) Server() string { return "https://cluster.example" }

func (f fakeLive) Namespace() string {
	if f.connected != "" {
		return f.connected
	}
	return "of-context"
}

func (f fakeLive) Policies(context.Context) (policyset.Sources, error) { return *f.sources, nil }

func (f fakeLive) Revisions(context.Context) ([]string, error) {
	if f.revisions == nil {
		return nil, errors.New("no right")
	}
	return f.revisions, nil
}

func (f fakeLive) Labels(namespace string) map[string]string {
	return map[string]string{"name-of": namespace}
}

func (f fakeLive) Faults() error { return f.faults }

func (f fakeLive) Object(_ context.Context, kind metav1.APIResource, namespace, name string) ([]byte, error) {
	text, ok := f.objects[namespace+"/"+kind.Name+"/"+name]
	if !ok {
		return nil, fmt.Errorf("%s %q not found", kind.Name, name)
	}
	return []byte(text), nil
}

// with returns a command line of a program on a cluster.
func (f *fakeCluster) execute(t *testing.T, args ...string) result {
	t.Helper()
	root := cli.Group("pipeguard", "", "", NewCommand(f), NewExplain(f))
	var out, errOut strings.Builder
	code := cli.Run(t.Context(), root, args, strings.NewReader(""), &out, &errOut)
	return result{Code: code, Out: out.String(), ErrOut: errOut.String()}
}

// clusterOf has the policies of files, and replicas that decide by them.
func clusterOf(t *testing.T, files ...string) *fakeCluster {
	t.Helper()
	s := policyset.Sources{Parameters: admission.DefaultParameters()}
	if err := policysource.ReadPolicies(&s, files, nil); err != nil {
		t.Fatal(err)
	}
	combined, err := policysource.Combine("", s)
	if err != nil {
		t.Fatal(err)
	}
	_, active, err := combined.Reviewer(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return &fakeCluster{sources: &s, revisions: []string{active.Revision()}}
}

func TestLiveJudgesAsTheClusterDoes(t *testing.T) {
	f := clusterOf(t, "testdata/review/policies.yaml")
	got := f.execute(t, "review", "--live", "-f", "testdata/review/driver.yaml", "-o", "json")
	if got.Code != cli.ExitYes || got.ErrOut != "" {
		t.Fatalf("exit code %d, %s%s", got.Code, got.Out, got.ErrOut)
	}
	clitest.Golden(t, "review-live.json", got.Out)
	if got := execute(t, "", "review", "-f", "testdata/review/driver.yaml"); got.Code != cli.ExitNo {
		t.Errorf("without the cluster's policies: exit code %d, %s", got.Code, got.Out)
	}
}

func TestLivePutsObjectsIntoTheNamespaceOfTheContext(t *testing.T) {
	f := clusterOf(t)
	for want, args := range map[string][]string{"of-context": nil, "ops": {"-n", "ops"}} {
		got := f.execute(t, append([]string{"review", "--live", "-f", "testdata/review/mixed.yaml", "-o", "json"}, args...)...)
		if !strings.Contains(got.Out, `"namespace": "`+want+`"`) {
			t.Errorf("%s: exit code %d, %s%s", want, got.Code, got.Out, got.ErrOut)
		}
	}
}

// An answer that may not be the cluster's is none, whatever it is.
func TestLiveWithoutTheClustersOwnPoliciesIsNoAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*fakeCluster)
		want   string
	}{
		"another revision":    {func(f *fakeCluster) { f.revisions = []string{"sha256:0"} }, "its replicas decide by revision sha256:0"},
		"replicas that part":  {func(f *fakeCluster) { f.revisions = append(f.revisions, "sha256:\x1b0") }, "and sha256:<U+001B>0"},
		"unknown revisions":   {func(f *fakeCluster) { f.revisions = nil }, "is not known: no right"},
		"unknown labels":      {func(f *fakeCluster) { f.faults = errors.New("labels of shop") }, "labels of shop"},
		"an unreached server": {func(f *fakeCluster) { f.sources = nil }, "there is no kubeconfig"},
	} {
		f := clusterOf(t)
		c.change(f)
		got := f.execute(t, "review", "--live", "-f", "testdata/review/ordinary.yaml")
		if got.Code != cli.ExitBadInput || !strings.Contains(got.ErrOut, c.want) {
			t.Errorf("%s: exit code %d, standard error %q", name, got.Code, got.ErrOut)
		}
	}
}

func TestLiveAndFilesExcludeEachOther(t *testing.T) {
	f := clusterOf(t)
	for want, args := range map[string][]string{
		"--kubeconfig goes with --live":   {"--kubeconfig", "x"},
		"leave out --params":              {"--live", "--params", "x"},
		"leave out --params and --polici": {"--live", "--policies", "x"},
	} {
		got := f.execute(t, append([]string{"review", "-f", "testdata/review/ordinary.yaml"}, args...)...)
		if got.Code != cli.ExitBadInput || !strings.Contains(got.ErrOut, want) {
			t.Errorf("%q: exit code %d, standard error %q", args, got.Code, got.ErrOut)
		}
	}
}

func TestWhySystemTakesTheClustersPolicies(t *testing.T) {
	f := clusterOf(t, "testdata/review/policies.yaml")
	object, err := os.ReadFile("testdata/review/driver.yaml")
	if err != nil || len(object) == 0 {
		t.Fatal(err)
	}
	got := f.execute(t, "review", "--live", "--why-system", "testdata/review/driver.yaml", "-o", "json")
	if !json.Valid([]byte(got.Out)) || got.Code != cli.ExitYes {
		t.Errorf("exit code %d, %s%s", got.Code, got.Out, got.ErrOut)
	}
}
