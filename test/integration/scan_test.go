//go:build !windows

package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/test/routes"
)

// reported waits until the reports of a namespace have a summary, and returns all results of all parts.
func reported(t *testing.T, namespace string, want v1alpha1.ReportSummary) (results []v1alpha1.ReportResult, parts int) {
	t.Helper()
	eventually(t, fmt.Sprintf("the report of %s has %+v", namespace, want), func(ctx context.Context) error {
		list := &v1alpha1.PipeReportList{}
		if err := at(t).api.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return err
		}
		results, parts = nil, len(list.Items)
		for _, r := range list.Items {
			if diff := cmp.Diff(want, r.Summary); diff != "" {
				return fmt.Errorf("%s (-want +got):\n%s", r.Name, diff)
			}
			if !strings.HasSuffix(r.Part, fmt.Sprintf("/%d", parts)) {
				return fmt.Errorf("%s is part %s of %d", r.Name, r.Part, parts)
			}
			results = append(results, r.Results...)
		}
		if parts == 0 {
			return errors.New("there is none")
		}
		return nil
	})
	return results, parts
}

// rescanned makes the policies change, which starts a scan, and undoes that when the test is over.
func rescanned(t *testing.T, round string) {
	t.Helper()
	ready(t, pipePolicy("round-"+round, []v1alpha1.PipePattern{v1alpha1.PipePattern("unused-" + round)}))
}

func TestWhatIsOlderThanTheWebhookIsReported(t *testing.T) {
	const spaces, pods = 4, 100
	ungoverned(t)
	var names []string
	var fixed client.Object
	guilty := volume(routes.Local(pipe))
	deleted(t, guilty)
	before(t, func() {
		for i := range spaces {
			space := namespace(t, fmt.Sprintf("scan%d", i))
			names = append(names, space)
			for j := range pods {
				p := pod(space, "")
				switch j % 10 {
				case 0: // refused
					p = pod(space, "", pipe)
				case 1: // warned of
					p.Annotations = map[string]string{"microsoft.com/hostprocess-container": "true"}
				case 2: // recorded
					p = pod(space, "", `C:\Windows`)
				}
				created(t, p)
			}
			for _, w := range routes.Workloads() {
				o := named(w.Make(template("", pipe)), space)
				created(t, o)
				if i == 0 && w.Kind == "Deployment" {
					fixed = o
				}
			}
		}
		created(t, guilty)
	})
	kinds := int32(len(routes.Workloads()))
	want := v1alpha1.ReportSummary{Judged: pods + kinds, Deny: pods/10 + kinds, Warn: pods / 10, Audit: pods / 10}
	rescanned(t, "first")
	for _, space := range names {
		results, parts := reported(t, space, want)
		if len(results) != int(want.Deny+want.Warn+want.Audit) || parts != 1 {
			t.Errorf("%d results in %d parts", len(results), parts)
		}
		for _, r := range results {
			if r.Subject.Namespace != space || r.Message == "" || r.Field == "" || r.Severity == "" {
				t.Errorf("result %+v", r)
			}
		}
	}
	eventually(t, "the report of PersistentVolumes has the one", func(ctx context.Context) error {
		list := &v1alpha1.ClusterPipeReportList{}
		if err := at(t).api.Client.List(ctx, list); err != nil {
			return err
		}
		for _, r := range list.Items {
			for _, result := range r.Results {
				if result.Subject.Name == guilty.Name && result.Rule == "PG007" && result.Effect == "deny" {
					return nil
				}
			}
		}
		return errors.New("it has not")
	})

	// What is put right leaves the report; what is deleted as well.
	changed(t, fixed, func() { routes.Workloads()[0].Template(fixed).Spec.Volumes[0].HostPath.Path = "/var/log" })
	if err := at(t).api.Client.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(names[1]), client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	rescanned(t, "second")
	want.Deny--
	results, _ := reported(t, names[0], want)
	for _, r := range results {
		if r.Subject.Kind == "Deployment" {
			t.Errorf("still reported: %+v", r)
		}
	}
	reported(t, names[1], v1alpha1.ReportSummary{Judged: kinds, Deny: kinds})
}

func TestAReportThatIsTooLargeForOneObjectHasParts(t *testing.T) {
	const pods, pipes = 60, 20 // what one object may list
	ungoverned(t)
	space := namespace(t, "parts")
	before(t, func() {
		for range pods {
			var paths []string
			for range pipes {
				paths = append(paths, pipe)
			}
			created(t, pod(space, "", paths...))
		}
	})
	rescanned(t, "parts")
	results, parts := reported(t, space, v1alpha1.ReportSummary{Judged: pods, Deny: pods * pipes})
	if len(results) != pods*pipes || parts < 2 {
		t.Errorf("%d results in %d parts, want %d in more than one", len(results), parts, pods*pipes)
	}
	seen := map[string]int{}
	for _, r := range results {
		seen[r.Subject.Name+" "+r.Field]++
	}
	if len(seen) != pods*pipes {
		t.Errorf("%d different results of %d: some are there twice", len(seen), len(results))
	}
	if err := at(t).api.Client.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(space), client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	rescanned(t, "empty")
	eventually(t, "all parts are gone", func(ctx context.Context) error {
		list := &v1alpha1.PipeReportList{}
		err := at(t).api.Client.List(ctx, list, client.InNamespace(space))
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("%d are left", len(list.Items))
		}
		return err
	})
}

func TestAPolicyCountsWhatViolatesIt(t *testing.T) {
	ungoverned(t)
	space := namespace(t, "counted")
	var pods []client.Object
	for range 5 {
		pods = append(pods, pod(space, "", `\\.\pipe\`+space)) // nobody guards it yet
	}
	created(t, pods...)
	p := pipePolicy("counts", []v1alpha1.PipePattern{v1alpha1.PipePattern(space)})
	counts := func(want int32) {
		t.Helper()
		eventually(t, fmt.Sprintf("the status has %d violations", want), func(ctx context.Context) error {
			if err := at(t).api.Client.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
				return err
			}
			if p.Status.Violations == nil || *p.Status.Violations != want {
				return fmt.Errorf("status: %+v", p.Status)
			}
			return nil
		})
	}
	ready(t, p)
	counts(5)
	for _, o := range pods[:2] {
		if err := at(t).api.Client.Delete(t.Context(), o, client.GracePeriodSeconds(0)); err != nil {
			t.Fatal(err)
		}
	}
	rescanned(t, "counts")
	counts(3)
}

func TestAPolicyNamesTheSubjectsInAModeThatItDoesNotPermit(t *testing.T) {
	ungoverned(t)
	space := namespace(t, "modes", driver)
	host := pod(space, driver)
	host.Spec.HostNetwork = true
	host.Spec.SecurityContext = &corev1.PodSecurityContext{WindowsOptions: &corev1.WindowsSecurityContextOptions{HostProcess: new(true), RunAsUserName: new(`NT AUTHORITY\SYSTEM`)}}
	created(t, host)
	p := pipePolicy("modes", []v1alpha1.PipePattern{v1alpha1.PipePattern(space)}, subject(space))
	ready(t, p)
	status := become(t, p, v1alpha1.ConditionModesServed, metav1.ConditionFalse)
	const want = "subject node: 1 pods run as HostProcess containers, which the policy does not permit; add hostProcess"
	if c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionModesServed); c.Message != want {
		t.Errorf("message %q, want %q", c.Message, want)
	}
	if err := at(t).api.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
		t.Fatal(err)
	}
	before := p.DeepCopy()
	p.Spec.Subjects[0].HostProcess = &v1alpha1.HostProcess{}
	if err := at(t).api.Client.Patch(t.Context(), p, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	become(t, p, v1alpha1.ConditionModesServed, metav1.ConditionTrue)
}
