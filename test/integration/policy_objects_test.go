//go:build !windows

package integration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
)

// ungoverned removes all policies when the test is over and waits until the release decides without them.
func ungoverned(t *testing.T) {
	t.Helper()
	release := guarded(t)
	var base string
	eventually(t, "the release says by what it decides", func(ctx context.Context) (err error) {
		base, err = revision(ctx, release.Replicas[0])
		return err
	})
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		for _, o := range []client.Object{&v1alpha1.PipePolicy{}, &v1alpha1.PolicyModule{}} {
			if err := at(t).api.Client.DeleteAllOf(ctx, o); err != nil {
				t.Error(err)
			}
		}
		for _, replica := range release.Replicas {
			if err := replica.Await(ctx, limit, func(ctx context.Context) error {
				now, err := revision(ctx, replica)
				if err == nil && now != base {
					err = fmt.Errorf("it decides by %s, not by %s", now, base)
				}
				return err
			}); err != nil {
				t.Error(err)
			}
		}
	})
}

// pipePolicy is a PipePolicy for pipes with subjects.
func pipePolicy(name string, pipes []v1alpha1.PipePattern, subjects ...v1alpha1.Subject) *v1alpha1.PipePolicy {
	return &v1alpha1.PipePolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.PipePolicySpec{Pipes: pipes, Subjects: subjects}}
}

// subject is the driver of a namespace.
func subject(namespace string) v1alpha1.Subject {
	return v1alpha1.Subject{Name: "node", Namespace: namespace, ServiceAccounts: []string{driver}}
}

// module is a PolicyModule with files by name.
func module(name string, files map[string]string) *v1alpha1.PolicyModule {
	m := &v1alpha1.PolicyModule{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.PolicyModuleSpec{Modules: []v1alpha1.RegoFile{}}}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		m.Spec.Modules = append(m.Spec.Modules, v1alpha1.RegoFile{Name: file, Rego: files[file]})
	}
	return m
}

// parametersOf are parameters of a PolicyModule.
func parametersOf(text string) *apiextensionsv1.JSON { return &apiextensionsv1.JSON{Raw: []byte(text)} }

// statusOf reads the common part of the status of a policy object, and its generation.
func (s *site) statusOf(ctx context.Context, o client.Object) (v1alpha1.PolicyStatus, int64, error) {
	if err := s.api.Client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
		return v1alpha1.PolicyStatus{}, 0, err
	}
	switch o := o.(type) {
	case *v1alpha1.PipePolicy:
		return o.Status.PolicyStatus, o.Generation, nil
	case *v1alpha1.PolicyModule:
		return o.Status.PolicyStatus, o.Generation, nil
	}
	return v1alpha1.PolicyStatus{}, 0, fmt.Errorf("%T has no status", o)
}

// become waits until the newest generation of an object has a condition, and returns the status.
func become(t *testing.T, o client.Object, kind string, want metav1.ConditionStatus) (status v1alpha1.PolicyStatus) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s %s is %s=%s", o.GetName(), o.GetResourceVersion(), kind, want), func(ctx context.Context) error {
		s, generation, err := at(t).statusOf(ctx, o)
		if err != nil {
			return err
		}
		c := meta.FindStatusCondition(s.Conditions, kind)
		if s.ObservedGeneration != generation || c == nil || c.Status != want {
			return fmt.Errorf("generation %d, status %+v", generation, s)
		}
		status = s
		return nil
	})
	return status
}

// ready creates objects and waits until each decides everywhere.
func ready(t *testing.T, objects ...client.Object) (status v1alpha1.PolicyStatus) {
	t.Helper()
	for _, o := range objects {
		eventually(t, "stored "+o.GetName(), func(ctx context.Context) error {
			err := at(t).api.Client.Create(ctx, o)
			if err != nil && !strings.Contains(err.Error(), "deadline exceeded") { // a trial compiles everything, and may be too slow here
				t.Fatal(err)
			}
			return err
		})
	}
	for _, o := range objects {
		status = become(t, o, v1alpha1.ConditionReady, metav1.ConditionTrue)
	}
	return status
}

// happened waits for an Event about an object, whose note contains text.
func happened(t *testing.T, o client.Object, reason, text string) {
	t.Helper()
	eventually(t, fmt.Sprintf("an Event %s about %s", reason, o.GetName()), func(ctx context.Context) error {
		list := &eventsv1.EventList{}
		if err := at(t).api.Client.List(ctx, list); err != nil {
			return err
		}
		var seen []string
		for _, e := range list.Items {
			if e.Regarding.Name != o.GetName() || e.Regarding.UID != o.GetUID() {
				continue
			}
			if e.Reason == reason && strings.Contains(e.Note, text) {
				return nil
			}
			seen = append(seen, e.Reason+": "+e.Note)
		}
		return errors.New(strings.Join(seen, "; "))
	})
}
