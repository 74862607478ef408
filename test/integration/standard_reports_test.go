//go:build !windows

package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/test/harness"
	"github.com/pipeguard/pipeguard/test/integration/cluster"
	"github.com/pipeguard/pipeguard/test/routes"
)

// standardKind is a kind of report that other projects define.
type standardKind struct {
	value, role string // of the chart
	group       schema.GroupVersion
	kind        string
	plural      string
}

func TestFindingsAreWrittenAsPolicyReportsToo(t *testing.T) {
	standardReports(t, standardKind{
		"PolicyReport", "pipeguard-webhook-reports-policyreport", schema.GroupVersion{Group: "wgpolicyk8s.io", Version: "v1alpha2"}, "PolicyReport", "policyreports",
	})
}

func TestFindingsAreWrittenAsOpenReportsToo(t *testing.T) {
	standardReports(t, standardKind{
		"OpenReports", "pipeguard-webhook-reports-openreports", schema.GroupVersion{Group: "openreports.io", Version: "v1alpha1"}, "Report", "reports",
	})
}

// standardRelease is a release with standard reports, on an API server that no other test has: the kinds come during the test.
type standardRelease struct {
	*testing.T
	standardKind
	api    *cluster.APIServer
	rounds int
}

func standardReports(t *testing.T, k standardKind) {
	t.Helper()
	t.Parallel()
	ctx := context.WithoutCancel(t.Context())
	api, err := cluster.StartAPIServer(ctx, cluster.APIServerOptions{Tools: shared.tools, Dir: t.TempDir(), CRDs: filepath.Join(harness.Root(), "config", "crd")})
	if err != nil {
		t.Fatal(err)
	}
	r := &standardRelease{T: t, standardKind: k, api: api}
	t.Cleanup(func() {
		if err := api.Stop(); err != nil {
			t.Error(err)
		}
	})
	dir := t.TempDir()
	config := filepath.Join(dir, "webhook.yaml")
	if err := cluster.WriteWebhookConfig(config, fmt.Sprintf("reports: {standard: %s, clusterRole: %s}", k.value, k.role)); err != nil {
		t.Fatal(err)
	}
	const space = "standard"
	guilty, mount := pod(space, "", pipe), volume(routes.Local(pipe))
	release, err := api.Install(ctx, cluster.ReleaseOptions{
		Webhook: shared.webhook, Chart: rendered(t, "reports.standard="+k.value), Dir: dir, Parameters: parameters, Args: []string{"--config", config},
		Before: func(ctx context.Context, _ *cluster.Release) error {
			return errors.Join(api.EnsureNamespace(ctx, space), api.Client.Create(ctx, guilty), api.Client.Create(ctx, mount))
		},
	})
	if release != nil {
		t.Cleanup(func() {
			if err := release.Uninstall(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	if err != nil {
		t.Fatal(err) // without the kinds it has to be ready all the same
	}
	eventually(t, "the release reports in its own kind", func(ctx context.Context) error {
		return api.Client.Get(ctx, client.ObjectKey{Namespace: space, Name: "pipeguard"}, &v1alpha1.PipeReport{})
	})

	r.define()
	r.rescan()
	eventually(t, "the findings are there in the standard kind", func(ctx context.Context) error {
		return r.says(ctx, space, `{"fail":1,"warn":0,"error":0,"pass":0,"skip":0}`, guilty.Name, "Pod", "PG001")
	})
	eventually(t, "those about PersistentVolumes as well", func(ctx context.Context) error {
		return r.says(ctx, "", `{"fail":1,"warn":0,"error":0,"pass":0,"skip":0}`, mount.Name, "PersistentVolume", "PG007")
	})
	// A report of another source stays.
	theirs := r.object(space)
	theirs.SetName("theirs")
	if err := api.Client.Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	version := r.version(space)
	r.rescan()
	if now := r.version(space); now != version {
		t.Errorf("a scan with the same findings has written: version %q, was %q", now, version)
	}
	if err := api.Client.Delete(t.Context(), guilty, client.GracePeriodSeconds(0)); err != nil { // a PersistentVolume waits for a controller
		t.Fatal(err)
	}
	r.rescan()
	eventually(t, "the report without findings is gone", func(ctx context.Context) error {
		err := api.Client.Get(ctx, client.ObjectKey{Namespace: space, Name: "pipeguard"}, r.object(space))
		if err == nil {
			return errors.New("it is there")
		}
		return client.IgnoreNotFound(err)
	})
	if err := api.Client.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs); err != nil {
		t.Errorf("the report of another source: %v", err)
	}
}

// define installs the published definitions.
func (r *standardRelease) define() {
	r.Helper()
	for _, plural := range []string{r.plural, "cluster" + r.plural} {
		text, err := os.ReadFile(filepath.Join(harness.Root(), "internal", "controller", "scan", "testdata", "crds", r.group.Group+"_"+plural+".yaml"))
		if err != nil {
			r.Fatal(err)
		}
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, &o.Object); err != nil {
			r.Fatal(err)
		}
		if err := r.api.Client.Create(r.Context(), o); err != nil {
			r.Fatal(err)
		}
	}
	eventually(r.T, "the kinds are served", func(ctx context.Context) error {
		return errors.Join(r.list(ctx, "x"), r.list(ctx, ""))
	})
}

func (r *standardRelease) list(ctx context.Context, namespace string) error {
	all := &unstructured.UnstructuredList{}
	all.SetGroupVersionKind(r.object(namespace).GroupVersionKind())
	return r.api.Client.List(ctx, all)
}

// rescan makes the policies change, which starts a scan, and returns when they decide.
func (r *standardRelease) rescan() {
	r.Helper()
	r.rounds++
	name := fmt.Sprintf("round-%d", r.rounds)
	p := pipePolicy(name, []v1alpha1.PipePattern{v1alpha1.PipePattern("unused-" + name)})
	eventually(r.T, "a policy is stored", func(ctx context.Context) error {
		return client.IgnoreAlreadyExists(r.api.Client.Create(ctx, p.DeepCopy()))
	})
	eventually(r.T, "our own report is of the policies with it", func(ctx context.Context) error {
		if err := r.api.Client.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		if p.Status.Revision == "" || p.Status.Violations == nil { // known once everything is scanned by this revision
			return fmt.Errorf("status %+v", p.Status)
		}
		return nil
	})
}

// object is an empty report of a namespace, or of the objects without one.
func (r *standardRelease) object(namespace string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	kind := r.kind
	if namespace == "" {
		kind = "Cluster" + kind
	}
	o.SetGroupVersionKind(r.group.WithKind(kind))
	o.SetNamespace(namespace)
	return o
}

// version is the resourceVersion of a report; "" if it is gone.
func (r *standardRelease) version(namespace string) string {
	r.Helper()
	o := r.object(namespace)
	if err := r.api.Client.Get(r.Context(), client.ObjectKey{Namespace: namespace, Name: "pipeguard"}, o); client.IgnoreNotFound(err) != nil {
		r.Fatal(err)
	}
	return o.GetResourceVersion()
}

// says asks whether the report has this summary and one result, about the object and by the rule, and belongs to the role.
func (r *standardRelease) says(ctx context.Context, namespace, summary, name, kind, rule string) error {
	o := r.object(namespace)
	if err := r.api.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "pipeguard"}, o); err != nil {
		return err
	}
	var got, want struct {
		Summary map[string]int
		Results []struct {
			Source, Rule, Result string
			Resources            []struct{ Kind, Name string }
		}
	}
	text, err := o.MarshalJSON()
	if err != nil {
		return err
	}
	if err := yaml.Unmarshal(text, &got); err != nil {
		return err
	}
	wanted := fmt.Sprintf(`{"summary":%s,"results":[{"source":"pipeguard","rule":%q,"result":"fail","resources":[{"kind":%q,"name":%q}]}]}`, summary, rule, kind, name)
	if err := yaml.Unmarshal([]byte(wanted), &want); err != nil {
		return err
	}
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Errorf("(-want +got):\n%s", diff)
	}
	role := &unstructured.Unstructured{}
	role.SetGroupVersionKind(schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"})
	if err := r.api.Client.Get(ctx, client.ObjectKey{Name: r.role}, role); err != nil {
		return err
	}
	if owners := o.GetOwnerReferences(); len(owners) != 1 || owners[0].UID != role.GetUID() || owners[0].Kind != "ClusterRole" {
		return fmt.Errorf("owners %+v", owners)
	}
	return nil
}
