package scan

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pipeguard/pipeguard/internal/logkeys"
)

// standardState is what became of the standard reports in a pass.
type standardState string

const (
	standardWritten standardState = "written" // all of them are as they should be
	standardAbsent  standardState = "absent"  // the cluster does not have the kinds
	standardFailing standardState = "failing" // one could not be read or written
)

func standardStates() []standardState {
	return []standardState{standardWritten, standardAbsent, standardFailing}
}

// standardPublisher writes reports of a standard kind. The cluster may have it or not, at any time.
type standardPublisher struct {
	publisher
	// role is the ClusterRole that the reports belong to, or "".
	role string
	// Of the goroutine that is in Start:
	owners []metav1.OwnerReference // as of the last pass
	state  standardState           // the last, so that a change of it is logged once
}

// standardPublication finds the standard reports that are there. What is wrong with them does not make the pass incomplete: it is
// counted and logged apart.
func (p *pass) standardPublication(ctx context.Context) (*publication, error) {
	s := &publication{publisher: &p.standard.publisher, pass: p, failed: func(message string, err error, fields ...zap.Field) {
		if !errors.Is(err, errForeign) { // as with our own, a user keeps findings out of one namespace, and no more
			p.standardFailures++
		}
		p.metrics.standardErrors.Inc()
		p.options.Log.Warn("standard reports: "+message, append(fields, zap.Error(err))...)
	}}
	err := s.look(ctx, func(err error) bool {
		isAbsent := apierrors.IsNotFound(err)
		p.isStandardAbsent = p.isStandardAbsent || isAbsent
		return isAbsent
	})
	if err != nil || len(s.held) == len(s.form.kinds()) {
		return s, err
	}
	if err := p.standard.own(ctx, s); err != nil {
		if end := p.ends(ctx, err); end != nil {
			return nil, end
		}
		s.failed("the ClusterRole that they belong to could not be read; they stay as they were", err)
		for _, k := range s.form.kinds() {
			s.held[k] = true
		}
	}
	return s, nil
}

// own finds the owner of the reports. Reports of another owner, or of none, are read again and given this one.
func (p *standardPublisher) own(ctx context.Context, s *publication) error {
	if p.role == "" {
		return nil
	}
	owner, err := p.roleReference(ctx)
	if err != nil {
		return err
	}
	s.owners = []metav1.OwnerReference{owner}
	if !slices.Equal(s.owners, p.owners) {
		clear(p.written)
	}
	p.owners = s.owners
	return nil
}

// roleReference refers to the ClusterRole, as it is now: an owner of another uid counts as gone.
func (p *standardPublisher) roleReference(ctx context.Context) (metav1.OwnerReference, error) {
	k := kind{schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}, "clusterroles", false}
	raw, err := answer(p.client.Get().AbsPath(k.path(""), p.role).Do(ctx))
	if err != nil {
		return metav1.OwnerReference{}, fmt.Errorf("read ClusterRole %s: %w", p.role, err)
	}
	h, err := readHead(raw)
	if err != nil {
		return metav1.OwnerReference{}, fmt.Errorf("read ClusterRole %s: %w", p.role, err)
	}
	return metav1.OwnerReference{APIVersion: k.apiVersion(), Kind: k.gvk.Kind, Name: h.name, UID: types.UID(h.uid)}, nil
}

// standardPublished tells what became of the standard reports: a metric in each pass, a line in the log when it is another than before.
func (p *pass) standardPublished() {
	state := standardWritten
	switch {
	case p.standardFailures > 0:
		state = standardFailing
	case p.isStandardAbsent:
		state = standardAbsent
	}
	p.metrics.standardReports(state)
	was := p.standard.state
	p.standard.state = state
	if state == was {
		return
	}
	kind := p.standard.form.namespaced
	fields := []zap.Field{zap.String(logkeys.Kind, kind.gvk.Kind), zap.String(logkeys.Group, kind.gvk.Group), zap.String(logkeys.Version, kind.gvk.Version)}
	switch state {
	case standardAbsent:
		p.options.Log.Warn("standard reports are not written: the cluster does not have their kinds; each scan looks again", fields...)
	case standardWritten:
		p.options.Log.Info("standard reports are written", fields...)
	}
}
