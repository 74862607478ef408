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
	"github.com/pipeguard/pipeguard/test/bundletest"
	"github.com/pipeguard/pipeguard/test/harness"
)

// newTestBundles is what a replica has whose activated policies a test sets.
func newTestBundles(t *testing.T, active *controller.Activated) (*bundles, *int) {
	t.Helper()
	key := filepath.Join(t.TempDir(), "bundle.key")
	harness.Replace(t, key, bundletest.PrivatePEM(t, bundletest.NewKey(t)))
	o := bundleOptions{Key: key, Pools: []string{"default"}, Namespace: "n"}
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
		harness.Replace(t, s.params, "pipePolicies: {disk: {pipes: [csi-proxy-disk-v1], subjects: [{name: node, namespace: drivers, node: {methods: ["+method+"]}}]}}")
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
	b, err := newBundles(bundleOptions{}, nil, prometheus.NewRegistry(), zap.NewNop())
	if b != nil || err != nil || b.report() != nil {
		t.Errorf("%+v, %v", b, err)
	}
	b.attempted(nil) // is nobody's
}

func TestTheSettingsOfBundlesAreChecked(t *testing.T) {
	inCluster(t)
	const none = "webhook.yaml:3:10: bundles: there are none without key"
	for name, c := range map[string]struct {
		fields, want string
		args         []string
	}{
		"no key, but pools":      {fields: "bundles: {pools: [a]}", want: none},
		"no key, but a life":     {fields: "bundles: {life: 1h}", want: none},
		"no key, but a revision": {fields: "bundles: {minimumRevision: 1}", want: none},
		"no key, but a place":    {fields: "bundles: {namespace: a}", want: none},
		"no key, but Rego":       {fields: "bundles: {modules: d}", want: none},
		"no key, and not served": {fields: "bundles: {serve: false}", want: none},
		"a pool of dots":         {fields: "bundles: {key: k, pools: [a.b]}", want: `audience "a.b"`},
		"a pool twice":           {fields: "bundles: {key: k, pools: [a, a]}", want: `node pool "a" twice`},
		"no pool":                {fields: "bundles: {key: k, pools: []}", want: "at least one node pool"},
		"a short life":           {fields: "bundles: {key: k, life: 1m}", want: "life of 1m0s"},
		"a long life":            {fields: "bundles: {key: k, life: 2161h}", want: "life of 2161h"},
		"a negative life":        {fields: "bundles: {key: k, life: -1h}", want: "life of -1h"},
		"a revision below 0":     {fields: "bundles: {key: k, minimumRevision: -1}", want: "line 3: a value of type !!int where uint64 is expected"},
		"without a cluster":      {fields: "bundles: {key: k}", args: []string{"--standalone"}, want: "bundles: is for a webhook in a cluster"},
	} {
		var stderr bytes.Buffer
		args := append(c.args, configFile(t, c.fields), "--kubeconfig=/nonexistent/config")
		if code := execute(t.Context(), args, &bytes.Buffer{}, &stderr); code != exitUsage || !strings.Contains(stderr.String(), c.want) {
			t.Errorf("%s: exit code %d, %s", name, code, stderr.String())
		}
	}
	var stderr bytes.Buffer // the key is read later: what is wrong with it keeps nobody from reviews
	args := []string{configFile(t, "bundles: {key: /nonexistent/key}"), "--kubeconfig=/nonexistent/config"}
	if code := execute(t.Context(), args, &bytes.Buffer{}, &stderr); code != exitFailure || strings.Contains(stderr.String(), "key") {
		t.Errorf("exit code %d, %s", code, stderr.String())
	}
}
