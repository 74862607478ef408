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

// publisher writes the reports of one form, pass after pass.
type publisher struct {
	*store
	lists *lister
	// Of the goroutine that is in Start:
	written map[address]written // what the reports say
}

// publication brings the reports of one form in line with the findings of one pass.
type publication struct {
	*publisher
	pass   *pass
	owners []metav1.OwnerReference // of the reports; nil leaves those that are there
	there  map[address]existing
	// Kinds whose reports stay as they are, beside those that the pass holds.
	held map[kind]bool
	// failed counts, and logs, that something of the form could not be read or written.
	failed func(message string, err error, fields ...zap.Field)
}

// publish brings the reports of all forms in line with the findings. An error means that ctx has ended.
func (p *pass) publish(ctx context.Context) error {
	own, err := p.ownPublication(ctx)
	if err != nil {
		return err
	}
	all := []*publication{own}
	if p.standard != nil {
		standard, err := p.standardPublication(ctx)
		if err != nil {
			return err
		}
		all = append(all, standard)
	}
	for _, name := range p.reported(all) {
		parts, err := p.parts(name)
		if err != nil {
			own.failed("a report stays as it was", err, zap.String(logkeys.Namespace, name))
			continue
		}
		for _, form := range all {
			if err := form.publish(ctx, name, parts); err != nil {
				return err
			}
		}
	}
	if p.standard != nil {
		p.standardPublished()
	}
	return nil
}

// ownPublication finds the PipeReports that are there.
func (p *pass) ownPublication(ctx context.Context) (*publication, error) {
	own := &publication{publisher: p.own, pass: p, failed: func(message string, err error, fields ...zap.Field) {
		// A user who may create reports in a namespace can keep its findings out of it, but cannot stop the scan.
		if !errors.Is(err, errForeign) {
			p.failures++
		}
		p.metrics.errors.Inc()
		p.options.Log.Warn(message, append(fields, zap.Error(err))...)
	}}
	return own, own.look(ctx, func(error) bool { return false })
}

// look finds the reports that are there. A kind that cannot be listed is held; it is no failure if isAbsent says so.
func (p *publication) look(ctx context.Context, isAbsent func(error) bool) error {
	p.there, p.held = map[address]existing{}, map[kind]bool{}
	for _, k := range p.form.kinds() {
		found := &reports{kind: k}
		err := p.lists.list(ctx, listing{k.path(""), acceptMetadata, p.form.selector}, found)
		if err == nil {
			maps.Copy(p.there, found.found)
			continue
		}
		if end := p.pass.ends(ctx, err); end != nil {
			return end
		}
		p.held[k] = true
		if !isAbsent(err) {
			p.failed("scan is incomplete; reports stay as they were", err, zap.String(logkeys.Kind, k.gvk.Kind))
		}
	}
	maps.DeleteFunc(p.written, func(a address, _ written) bool {
		_, ok := p.there[a]
		return !ok
	})
	return nil
}

// reported are the namespaces that have findings or a report, in order.
func (p *pass) reported(all []*publication) []string {
	names := map[string]bool{}
	for _, byNamespace := range p.findings {
		for name, found := range byNamespace {
			if findings(found.summary) > 0 {
				names[name] = true
			}
		}
	}
	for _, form := range all {
		for a := range form.there {
			names[a.namespace] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// publish brings one namespace's report in line, unless it is held. An error means that ctx has ended.
func (p *publication) publish(ctx context.Context, name string, parts []v1alpha1.Report) error {
	if p.pass.isHeld(name) || p.held[p.form.kindOf(name)] {
		return nil
	}
	err := p.publishOne(ctx, name, parts)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("scan: %w", context.Cause(ctx))
	}
	p.failed("a report stays as it was", err, zap.String(logkeys.Kind, p.form.kindOf(name).gvk.Kind), zap.String(logkeys.Namespace, name))
	return nil
}

// publishOne writes the parts of one namespace's report and then removes those that it no longer has.
func (p *publication) publishOne(ctx context.Context, name string, parts []v1alpha1.Report) error {
	for i, d := range p.form.documents(parts) {
		if err := p.putPart(ctx, address{name, partName(i)}, d); err != nil {
			return err
		}
	}
	var faults []error
	for a, found := range p.there {
		if a.namespace != name || !isStale(a.name, len(parts)) || !found.isOurs {
			continue
		}
		// A conflict means that someone has written it since; the next pass sees what.
		if err := p.delete(ctx, a, found); err != nil && !apierrors.IsNotFound(err) {
			faults = append(faults, fmt.Errorf("delete %s: %w", p.name(a), err))
			continue
		}
		delete(p.written, a)
		p.pass.deleted++
	}
	return errors.Join(faults...)
}

// putPart writes a part if it says something else than what is there.
func (p *publication) putPart(ctx context.Context, a address, d document) error {
	content, err := contentOf(d)
	if err != nil {
		return err
	}
	found, exists := p.there[a]
	if exists && p.written[a] == (written{found.version, content}) {
		return nil
	}
	for attempt := 1; ; attempt++ {
		version, isNew, err := p.putOnce(ctx, a, d, content, exists)
		switch {
		case err == nil:
			p.written[a] = written{version, content}
			if isNew {
				p.pass.put++
			}
			return nil
		case isNamespaceGoing(a, err):
			return nil
		case attempt == putAttempts || !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err):
			return fmt.Errorf("write %s: %w", p.name(a), err)
		}
		exists = !apierrors.IsNotFound(err)
	}
}

// putOnce creates the report, or reads it and replaces what it says if that is another. isNew is true if it has written.
func (p *publication) putOnce(ctx context.Context, a address, d document, content digest, exists bool) (version string, isNew bool, err error) {
	now := p.pass.options.Now().UTC().Truncate(time.Second)
	if !exists {
		version, err = p.create(ctx, a, p.owners, d, now)
		return version, true, err
	}
	old, says, err := p.get(ctx, a)
	if err != nil {
		return "", false, err
	}
	if old.Labels[managedByLabel] != managedBy {
		return "", false, errForeign
	}
	was, err := contentOf(says)
	if err != nil {
		return "", false, err
	}
	if was == content && (p.owners == nil || slices.Equal(p.owners, old.OwnerReferences)) {
		return old.ResourceVersion, false, nil
	}
	if p.owners != nil {
		old.OwnerReferences = p.owners
	}
	version, err = p.update(ctx, a, old, d, now)
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
