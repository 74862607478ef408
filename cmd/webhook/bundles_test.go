package main

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/controller"
	"github.com/pipeguard/pipeguard/internal/controller/publish"
	"github.com/pipeguard/pipeguard/internal/core/access"
)

// newTestBundles is what a replica has whose activated policies a test sets.
func newTestBundles(t *testing.T, active *controller.Activated) (*bundles, *int) {
	t.Helper()
	_, text := newKey(t)
	key := filepath.Join(t.TempDir(), "bundle.key")
	write(t, key, text)
	o := clusterOptions{bundles: bundleOptions{key: key, pools: []string{"default"}, namespace: "n"}}
	b, err := newBundles(o, &rest.Config{Host: "http://127.0.0.1:1"}, prometheus.NewRegistry(), zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	refreshed := 0
	b.refresh = func() { refreshed++ }
	b.activated = func() (controller.Activated, bool) { return *active, active.Attempt != "" }
	return b, &refreshed
}

func driverPolicy() v1alpha1.PipePolicy {
	return v1alpha1.PipePolicy{ObjectMeta: metav1.ObjectMeta{Name: "disk"}, Spec: v1alpha1.PipePolicySpec{
		Pipes:    []v1alpha1.PipePattern{"csi-proxy-disk-v1"},
		Subjects: []v1alpha1.Subject{{Name: "node", Namespace: "drivers", ServiceAccounts: []string{"node"}}},
	}}
}

func TestBundlesHoldWhatDecidesUnderTheRevisionOfDenials(t *testing.T) {
	active := &controller.Activated{}
	b, _ := newTestBundles(t, active)
	if _, err := b.content(t.Context()); !errors.Is(err, errNothingActive) {
		t.Errorf("before anything decides: %v", err)
	}
	*active = controller.Activated{Attempt: "a1", Revision: "sha256:0123", PipePolicies: []v1alpha1.PipePolicy{driverPolicy()}}
	got, err := b.content(t.Context())
	if err != nil || got.PolicyRevision != "sha256:0123" || !strings.Contains(string(got.ACL), `"name":"disk"`) || got.Modules != nil || b.attempt != "a1" {
		t.Errorf("%+v of attempt %s: %v", got, b.attempt, err)
	}
	unfit := driverPolicy()
	unfit.Spec.Pipes = nil
	active.PipePolicies = append(active.PipePolicies, unfit)
	if got, err := b.content(t.Context()); err == nil || !strings.Contains(err.Error(), `"disk"`) && !strings.Contains(err.Error(), "disk") {
		t.Errorf("unfit: %+v, %v", got, err)
	}
}

func TestTheFileOfParametersIsInBundlesAsItDecides(t *testing.T) {
	active := &controller.Activated{Attempt: "a1", PipePolicies: []v1alpha1.PipePolicy{driverPolicy()}}
	b, _ := newTestBundles(t, active)
	s := &source{params: filepath.Join(t.TempDir(), "parameters.yaml")}
	for _, method := range []string{"ListDiskIDs", "GetDiskStats"} {
		write(t, s.params, "pipePolicies: {disk: {pipes: [csi-proxy-disk-v1], subjects: [{name: node, namespace: drivers, node: {methods: ["+method+"]}}]}}")
		var err error
		if _, active.Parameters, err = s.base(); err != nil {
			t.Fatal(err)
		}
		got, err := b.content(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		list, err := access.ParseDocument(got.ACL)
		if err != nil || len(list.Policies) != 2 || list.Policies[0].Name != "disk" || list.Policies[1].Name != "parameters/disk" {
			t.Fatalf("%s, %v", got.ACL, err)
		}
		if diff := cmp.Diff([]string{method}, list.Policies[1].Subjects[0].Methods); diff != "" {
			t.Error(diff)
		}
	}
}

func TestStatusesAreLookedAtWhenTheBundlesChangeAndOnlyThen(t *testing.T) {
	b, refreshed := newTestBundles(t, &controller.Activated{})
	seven := publish.Result{Pool: "default", Revision: 7, Reason: publish.ReasonPublished}
	for _, step := range []struct {
		attempt string
		result  publish.Result
		want    int
		ok      bool
	}{
		{"a1", seven, 1, true}, {"a1", seven, 1, true}, {"a2", seven, 2, true},
		{"a2", publish.Result{Pool: "default", Reason: publish.ReasonKey, Err: errors.New("no key")}, 3, false},
		{"a2", publish.Result{Pool: "default", Reason: publish.ReasonKey, Err: errors.New("no key")}, 3, false},
		{"a2", seven, 4, true},
	} {
		b.attempt = step.attempt
		b.tell([]publish.Result{step.result})
		got := b.report()()
		if *refreshed != step.want || got.IsPublished != step.ok || got.Attempt != step.attempt || got.Reason != string(step.result.Reason) || got.Message == "" {
			t.Errorf("%+v: refreshed %d times, report %+v", step, *refreshed, got)
		}
	}
}

func TestNothingIsPublishedBeforeAnythingDecides(t *testing.T) {
	b, refreshed := newTestBundles(t, &controller.Activated{}) // whoever asks is told that there is nothing, which shows
	synctest.Test(t, func(t *testing.T) {
		b.first = make(chan struct{}) // of this bubble
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- b.Start(ctx) }()
		b.attempted(errors.New("does not compile"))
		time.Sleep(time.Hour)
		synctest.Wait()
		if *refreshed != 0 || len(b.publisher.Results()) != 0 {
			t.Errorf("published: %+v", b.publisher.Results())
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestWithoutAKeyThereAreNoBundles(t *testing.T) {
	b, err := newBundles(clusterOptions{}, nil, prometheus.NewRegistry(), zap.NewNop())
	if b != nil || err != nil || b.report() != nil {
		t.Errorf("%+v, %v", b, err)
	}
	b.attempted(nil) // is nobody's
}

func TestTheFlagsOfBundlesAreChecked(t *testing.T) {
	cluster := []string{"--pod-namespace=n", "--pod-name=p", "--kubeconfig=/nonexistent/config"}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no key, but pools":      {append(cluster, "--bundle-pools=a"), "--bundle-pools is for --bundle-key"},
		"no key, but a life":     {append(cluster, "--bundle-life=1h"), "--bundle-life is for --bundle-key"},
		"no key, but a revision": {append(cluster, "--bundle-minimum-revision=1"), "--bundle-minimum-revision is for --bundle-key"},
		"no key, but a place":    {append(cluster, "--bundle-namespace=a"), "--bundle-namespace is for --bundle-key"},
		"no key, but Rego":       {append(cluster, "--bundle-modules=d"), "--bundle-modules is for --bundle-key"},
		"a pool of dots":         {append(cluster, "--bundle-key=k", "--bundle-pools=a.b"), `audience "a.b"`},
		"a pool twice":           {append(cluster, "--bundle-key=k", "--bundle-pools=a,a"), `node pool "a" twice`},
		"no pool":                {append(cluster, "--bundle-key=k", "--bundle-pools="), "at least one node pool"},
		"a short life":           {append(cluster, "--bundle-key=k", "--bundle-life=1m"), "life of 1m0s"},
		"a long life":            {append(cluster, "--bundle-key=k", "--bundle-life=2161h"), "life of 2161h"},
		"a negative life":        {append(cluster, "--bundle-key=k", "--bundle-life=-1h"), "life of -1h"},
		"a revision below 0":     {append(cluster, "--bundle-key=k", "--bundle-minimum-revision=-1"), "invalid argument"},
		"without a cluster":      {[]string{"--standalone", "--bundle-key=k"}, "--bundle-key is for a webhook in a cluster"},
	} {
		var stderr bytes.Buffer
		if code := execute(t.Context(), c.args, &bytes.Buffer{}, &stderr); code != exitUsage || !strings.Contains(stderr.String(), c.want) {
			t.Errorf("%s: exit code %d, %s", name, code, stderr.String())
		}
	}
	var stderr bytes.Buffer // the key is read later: what is wrong with it keeps nobody from reviews
	if code := execute(t.Context(), append(cluster, "--bundle-key=/nonexistent/key"), &bytes.Buffer{}, &stderr); code != exitFailure || strings.Contains(stderr.String(), "key") {
		t.Errorf("exit code %d, %s", code, stderr.String())
	}
}
