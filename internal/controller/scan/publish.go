package scan

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/logkeys"
)

// written is what the Scanner knows of a report that it wrote or read: as long as the resourceVersion is the same, so is
// the content.
type written struct {
	version string
	content digest
}

// putAttempts bounds the attempts to write a report that someone else writes as well.
const putAttempts = 3

// errForeign means that an object has the name of a report and not its label.
var errForeign = errors.New("an object of this name belongs to someone else")

// publish brings the reports in line with the findings. An error means that ctx has ended.
func (p *pass) publish(ctx context.Context) error {
	there := map[address]existing{}
	for _, k := range []kind{reportKind(), clusterReportKind()} {
		found := &reports{kind: k}
		if err := p.lists.list(ctx, k.path(""), acceptMetadata, found); err != nil {
			if end := p.ends(ctx, err); end != nil {
				return end
			}
			p.fail(k, err)
			continue
		}
		maps.Copy(there, found.found)
	}
	maps.DeleteFunc(p.written, func(a address, _ written) bool {
		_, ok := there[a]
		return !ok
	})
	for _, name := range p.reported(there) {
		if p.isHeld(name) {
			continue
		}
		if err := p.publishOne(ctx, name, there); err != nil {
			if ctx.Err() != nil {
				return fmt.Errorf("scan: %w", context.Cause(ctx))
			}
			// A user who may create reports in a namespace can keep its findings out of it, but cannot stop the scan.
			if !errors.Is(err, errForeign) {
				p.failures++
			}
			p.metrics.errors.Inc()
			p.options.Log.Warn("a report stays as it was", zap.String(logkeys.Namespace, name), zap.Error(err))
		}
	}
	return nil
}

// reported are the namespaces that have findings or a report, in order.
func (p *pass) reported(there map[address]existing) []string {
	names := map[string]bool{}
	for _, byNamespace := range p.findings {
		for name, found := range byNamespace {
			if findings(found.summary) > 0 {
				names[name] = true
			}
		}
	}
	for a := range there {
		names[a.namespace] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// publishOne writes the parts of one namespace's report and then removes those that it no longer has.
func (p *pass) publishOne(ctx context.Context, name string, there map[address]existing) error {
	parts, err := p.parts(name)
	if err != nil {
		return err
	}
	for i, part := range parts {
		if err := p.putPart(ctx, address{name, partName(i)}, part, there); err != nil {
			return err
		}
	}
	var faults []error
	for a, found := range there {
		if a.namespace != name || !isStale(a.name, len(parts)) || !found.isOurs {
			continue
		}
		// A conflict means that someone has written it since; the next pass sees what.
		if err := p.store.delete(ctx, a, found); err != nil && !apierrors.IsNotFound(err) {
			faults = append(faults, fmt.Errorf("delete %s: %w", a, err))
			continue
		}
		delete(p.written, a)
		p.deleted++
	}
	return errors.Join(faults...)
}

// putPart writes a part if it says something else than what is there.
func (p *pass) putPart(ctx context.Context, a address, r v1alpha1.Report, there map[address]existing) error {
	content, err := contentOf(r)
	if err != nil {
		return err
	}
	found, exists := there[a]
	if exists && p.written[a] == (written{found.version, content}) {
		return nil
	}
	r.ScannedAt = metav1.Time{Time: p.options.Now().UTC().Truncate(time.Second)}
	for attempt := 1; ; attempt++ {
		version, isNew, err := p.putOnce(ctx, a, r, content, exists)
		switch {
		case err == nil:
			p.written[a] = written{version, content}
			if isNew {
				p.put++
			}
			return nil
		case isNamespaceGoing(a, err):
			return nil
		case attempt == putAttempts || !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err):
			return fmt.Errorf("write %s: %w", a, err)
		}
		exists = !apierrors.IsNotFound(err)
	}
}

// putOnce creates the report, or reads it and replaces what it says if that is another. isNew is true if it has written.
func (p *pass) putOnce(ctx context.Context, a address, r v1alpha1.Report, content digest, exists bool) (version string, isNew bool, err error) {
	if !exists {
		version, err = p.store.create(ctx, a, r)
		return version, true, err
	}
	old, err := p.store.get(ctx, a)
	if err != nil {
		return "", false, err
	}
	if old.Labels[managedByLabel] != managedBy {
		return "", false, errForeign
	}
	was, err := contentOf(old.Report)
	if err != nil {
		return "", false, err
	}
	if was == content {
		return old.ResourceVersion, false, nil
	}
	version, err = p.store.update(ctx, a, old, r)
	return version, true, err
}

// isNamespaceGoing reports whether a report could not be written because its namespace is being deleted, or is.
func isNamespaceGoing(a address, err error) bool {
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return true
	}
	status, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && apierrors.IsNotFound(err) && status.Status().Details != nil &&
		status.Status().Details.Kind == "namespaces" && status.Status().Details.Name == a.namespace
}
