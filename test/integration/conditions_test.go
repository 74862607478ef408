//go:build !windows

package integration

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/entries"
	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/internal/policyset"
	"github.com/pipeguard/pipeguard/policies"
	"github.com/pipeguard/pipeguard/test/integration/cluster"
)

// sentBy are the objects that the recorder was asked about, as kind/name, each with the entries that did.
func sentBy(r *cluster.Recorder) map[string][]string {
	out := map[string][]string{}
	for _, req := range r.Seen() {
		name := req.Kind.Kind + "/" + req.Name
		out[name] = append(out[name], strings.TrimPrefix(req.Path, "/"))
	}
	return out
}

// sent are those that the recorder was asked about as ones that could reach a pipe.
func sent(r *cluster.Recorder) map[string]bool {
	out := map[string]bool{}
	for name, entries := range sentBy(r) {
		out[name] = slices.ContainsFunc(entries, func(entry string) bool { return !isHostEntry(entry) })
	}
	return out
}

// isHostEntry says whether an entry of the webhook configuration is for objects that reach a node without a pipe.
func isHostEntry(name string) bool {
	return strings.HasPrefix(name, entries.PathPrefix) || strings.HasPrefix(name, entries.ProcessPrefix)
}

// reviewer judges in this process, with the built-in policy and its default parameters.
func reviewer(t *testing.T) *admission.Reviewer {
	t.Helper()
	files, err := policy.LoadFS(policies.FS())
	if err != nil {
		t.Fatal(err)
	}
	modules, err := policyset.Sources{Base: files, Parameters: admission.DefaultParameters()}.Assemble()
	if err != nil {
		t.Fatal(err)
	}
	engine, err := policy.New(policy.Options{Timeout: 20 * time.Second, BaseTested: true}) // all else that runs in this process uses its processor time too
	if err != nil {
		t.Fatal(err)
	}
	if _, err := engine.Activate(t.Context(), modules); err != nil {
		t.Fatal(err)
	}
	r, err := admission.NewReviewer(admission.ReviewerOptions{Engine: engine})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// judged says what the reviewer finds in an object.
func judged(t *testing.T, r *admission.Reviewer, o client.Object) admission.Result {
	t.Helper()
	scheme, err := cluster.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	gvk, err := apiutil.GVKForObject(o, scheme)
	if err != nil {
		t.Fatal(err)
	}
	o.GetObjectKind().SetGroupVersionKind(gvk)
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	req, err := admission.ObjectReview(raw)
	if err != nil {
		t.Fatal(err)
	}
	return r.Review(admission.WithoutTrace(t.Context()), req)
}

func TestWhateverCouldBeFoundIsSentAndPlainObjectsAreNot(t *testing.T) {
	const samples = 400
	recorder, r := recorded(t), reviewer(t)
	c := newCorpus(t, namespace(t, "corpus"), 20261121)
	var all []sample
	for range samples {
		s := c.next()
		err := at(t).api.Client.Create(t.Context(), s.object, client.DryRunAll)
		if apierrors.IsInvalid(err) {
			continue // nobody could store it
		}
		if err != nil {
			t.Fatalf("%T %s: %v", s.object, s.object.GetName(), err)
		}
		all = append(all, s)
	}
	seen := sentBy(recorder)
	found, plain, pipes, hosts := 0, 0, 0, 0
	for _, s := range all {
		res := judged(t, r, s.object)
		entries := seen[s.object.GetObjectKind().GroupVersionKind().Kind+"/"+s.object.GetName()]
		has := !res.Allowed || len(res.Findings) > 0
		if has && len(entries) == 0 {
			t.Errorf("%s is found (%v) and was not sent: %s", s.object.GetName(), res.Codes, text(t, s.object))
		}
		if len(entries) > 1 {
			t.Errorf("%s was sent to %v: %s", s.object.GetName(), entries, text(t, s.object))
		}
		if !res.Allowed && !slices.ContainsFunc(entries, func(e string) bool { return !isHostEntry(e) }) {
			t.Errorf("%s is refused (%v) and was sent to %v: %s", s.object.GetName(), res.Codes, entries, text(t, s.object))
		}
		if has && s.plain {
			t.Errorf("%s is plain and something is found in it: %v", s.object.GetName(), res.Codes)
		}
		if s.plain && len(entries) > 0 {
			t.Errorf("%s is plain and was sent: %s", s.object.GetName(), text(t, s.object))
		}
		found, plain, pipes = found+count(has), plain+count(s.plain), pipes+count(!res.Allowed)
		hosts += count(len(entries) == 1 && isHostEntry(entries[0]))
	}
	if len(all) < samples*2/3 || found < samples/6 || plain < samples/6 || pipes < samples/12 || hosts < samples/12 {
		t.Errorf("%d objects, something is found in %d, %d are plain, %d are refused, %d were sent for their node: the test says little", len(all), found, plain, pipes, hosts)
	}
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

func text(t *testing.T, o client.Object) string {
	t.Helper()
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// large is a pod with many containers and volumes, each of which mounts the volume of its number.
func large(namespace string, containers, volumes int) *corev1.Pod {
	p := pod(namespace, "")
	p.Spec.Containers = nil
	for i := range volumes {
		p.Spec.Volumes = append(p.Spec.Volumes, hostPath(fmt.Sprintf("v%d", i), fmt.Sprintf("/var/lib/%s/%d", strings.Repeat("x", 60), i)))
	}
	for i := range containers {
		c := corev1.Container{Name: fmt.Sprintf("c%d", i), Image: image}
		for j := range min(10, volumes) {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: fmt.Sprintf("v%d", (i+j)%volumes), MountPath: fmt.Sprintf("/m/%d", j), SubPath: "a/b"})
		}
		p.Spec.Containers = append(p.Spec.Containers, c)
	}
	return p
}

func TestLargePodsStayBelowTheLimitsOfConditions(t *testing.T) {
	recorder := recorded(t)
	space := namespace(t, "large")
	plain := large(space, 200, 200)
	created(t, plain)
	guilty := large(space, 200, 200)
	guilty.Spec.Volumes[199].HostPath.Path = pipe
	created(t, guilty)
	// The last thing that is looked at decides.
	last := large(space, 200, 200)
	last.Annotations = map[string]string{"microsoft.com/hostprocess-container": "true"}
	created(t, last)
	seen := sentBy(recorder)
	for p, want := range map[*corev1.Pod][]string{plain: nil, guilty: {"pods.pipeguard.dev"}, last: {"hostprocess-pods.pipeguard.dev"}} {
		if got := seen["Pod/"+p.Name]; !slices.Equal(got, want) {
			t.Errorf("sent to %v, want %v", got, want)
		}
	}
}

// Beyond the limits the API server gives up on the condition. With failurePolicy Fail that is a refusal.
func TestWhatIsTooLargeForConditionsIsNotLetPass(t *testing.T) {
	recorder := recorded(t)
	p := pod(namespace(t, "large"), "")
	for i := range 350 {
		p.Spec.Volumes = append(p.Spec.Volumes, hostPath(fmt.Sprintf("v%d", i), fmt.Sprintf("/%s/%d", strings.Repeat("x", 3800), i)))
	}
	p.Spec.Volumes = append(p.Spec.Volumes, hostPath("last", pipe))
	err := at(t).api.Client.Create(t.Context(), p, client.DryRunAll)
	if err == nil && !sent(recorder)["Pod/"+p.Name] {
		t.Error("it passed without being sent")
	}
}
