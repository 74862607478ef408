package scan

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/logkeys"
)

// pass is one look at everything.
type pass struct {
	*Scanner
	revision string
	findings map[string]map[string]*namespaceFindings // by resource and namespace
	// selection is what the reports list of the findings.
	selection *selection
	// What could not be read to its end keeps its reports as they are: of all namespaces, or of the objects without one.
	holdsNamespaces, holdsCluster bool

	failures int
	waited   int
	// Of the standard reports:
	standardFailures int
	isStandardAbsent bool

	busy         time.Duration // of the present turn
	put, deleted int
}

// pass judges what exists and brings the reports in line. isComplete is true if it has judged everything and written
// every report of our own: one of a standard kind that fails is tried again by the next pass, whenever that is due. An error means that
// it ended early: other policies decide, or ctx has ended.
func (s *Scanner) pass(ctx context.Context, revision string) (isComplete bool, err error) {
	s.began = s.options.Now()
	p := &pass{Scanner: s, revision: revision, findings: map[string]map[string]*namespaceFindings{}, selection: newSelection()}
	s.options.Log.Info("scan begins", zap.String(logkeys.Revision, revision))
	if err := p.judgeAll(ctx); err != nil {
		s.options.Log.Info("scan ends early", zap.String(logkeys.Revision, revision), zap.Error(err))
		return false, err
	}
	unread := p.failures
	if err := p.publish(ctx); err != nil {
		return false, err
	}
	total := p.totals()
	if unread == 0 {
		s.violations.Store(&violations{revision, total.violated, total.modes})
	}
	duration := s.options.Now().Sub(s.began)
	if isComplete = p.failures == 0; isComplete {
		s.metrics.completed(total, s.options.Now())
	}
	s.metrics.duration.Observe(duration.Seconds())
	line := s.options.Log.Info
	if !isComplete {
		line = s.options.Log.Warn
	}
	line("scan ends", zap.String(logkeys.Revision, revision),
		zap.Bool(logkeys.Complete, isComplete), zap.Int(logkeys.Failures, p.failures), zap.Int(logkeys.Objects, total.objects),
		zap.Int32(logkeys.Denied, total.summary.Deny), zap.Int32(logkeys.Warned, total.summary.Warn),
		zap.Int32(logkeys.Audited, total.summary.Audit), zap.Int32(logkeys.Unjudged, total.summary.Error),
		zap.Int(logkeys.Written, p.put), zap.Int(logkeys.Deleted, p.deleted), zap.Duration(logkeys.Duration, duration))
	if unread == 0 {
		s.options.Completed()
	}
	return isComplete, nil
}

// judgeAll judges the objects of all kinds. An error ends the pass; a kind that cannot be listed does not.
func (p *pass) judgeAll(ctx context.Context) error {
	for i, k := range judgedKinds() {
		c := p.newCollector(ctx, i, k)
		if err := p.lists.list(ctx, listing{path: k.path(""), accept: acceptObjects}, c); err != nil {
			if end := p.ends(ctx, err); end != nil {
				return end
			}
			p.fail(k, err)
			c.restart()
			continue
		}
		p.findings[k.resource] = c.findings
	}
	return nil
}

// ends returns the error that ends the pass, or nil if err is about one list.
func (p *pass) ends(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("scan: %w", context.Cause(ctx))
	}
	if errors.Is(err, errSuperseded) {
		return fmt.Errorf("scan: %w", errSuperseded)
	}
	return nil
}

// fail counts and logs that a kind could not be listed, and holds its reports.
func (p *pass) fail(k kind, err error) {
	if k.namespaced {
		p.holdsNamespaces = true
	} else {
		p.holdsCluster = true
	}
	p.failures++
	p.metrics.errors.Inc()
	p.options.Log.Warn("scan is incomplete; reports stay as they were", zap.String(logkeys.Kind, k.gvk.Kind), zap.Error(err))
}

// isHeld reports whether the reports of a namespace stay as they are; "" is the objects without one.
func (p *pass) isHeld(namespace string) bool {
	if namespace == "" {
		return p.holdsCluster
	}
	return p.holdsNamespaces
}
