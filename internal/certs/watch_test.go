package certs

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// oneSecret lists one Secret and never tells of a change.
type oneSecret struct {
	client.WithWatch
	secret corev1.Secret
}

func (c oneSecret) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*corev1.SecretList).Items = []corev1.Secret{c.secret}
	return nil
}

func (oneSecret) Watch(_ context.Context, _ client.ObjectList, options ...client.ListOption) (apiwatch.Interface, error) {
	var o client.ListOptions
	o.ApplyOptions(options)
	if o.Raw != nil && o.Raw.SendInitialEvents != nil {
		return nil, apierrors.NewBadRequest("lists are not watched here")
	}
	return apiwatch.NewFake(), nil
}

// A Follower looks when it is told of a change, and then not before the next: were the first object not known yet, a new
// replica would have no certificate until somebody touched the Secret.
func TestAnObjectIsKnownWhenItsHandlerIsCalled(t *testing.T) {
	c := oneSecret{secret: corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "certificate", ResourceVersion: "17"}}}
	type look struct {
		object any
		known  bool
	}
	looks := make(chan look, 1)
	var w *watch
	w = newWatch(c, &corev1.Secret{}, &corev1.SecretList{}, client.ObjectKeyFromObject(&c.secret), func() {
		object, known := w.get()
		looks <- look{object, known}
	})
	if _, known := w.get(); known {
		t.Error("the Secret is known before anything was asked")
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.controller.RunWithContext(ctx)
	}()
	defer func() { cancel(); <-ended }()
	got := <-looks
	if s, ok := got.object.(*corev1.Secret); !ok || !got.known || s.ResourceVersion != "17" {
		t.Errorf("at the first change: object %v, known %t", got.object, got.known)
	}
}
