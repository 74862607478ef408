package certs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/periodic"
)

// pause is between two looks at the cluster, however often it changes: another program may write another caBundle.
const pause = time.Second

// Rotator keeps the Secret and the caBundles, on the leader. What has to wait is not written down: a new leader waits
// anew, by its own clock.
type Rotator struct {
	options Options
	plan    plan

	// standing is the state whose bundle is in every configuration, with their editions, since when this process has
	// seen that. It is empty while the bundle is not there.
	standing string
	since    time.Time

	wait    time.Duration   // until the next look, if nothing changes before
	missing map[string]bool // configurations that were reported as missing
}

// NewRotator returns an error that names every fault of the options.
func NewRotator(o Options) (*Rotator, error) {
	if err := o.complete(); err != nil {
		return nil, fmt.Errorf("rotate certificates: %w", err)
	}
	return &Rotator{
		options: o,
		plan:    plan{hosts: o.Names.hosts(), authority: o.Authority, leaf: o.Leaf, grace: o.Grace, keep: o.Keep},
		missing: map[string]bool{},
	}, nil
}

// Start works until ctx is done, and can be called again after that. No fault of the cluster ends it: it reports and tries again.
func (r *Rotator) Start(ctx context.Context) error {
	r.options.Metrics.leads()
	r.standing = "" // what stood in an earlier term proves nothing
	failures := 0
	for {
		switch err := r.look(ctx); {
		case err == nil, ctx.Err() != nil:
			failures = 0
		case errors.Is(err, ErrConflict):
			r.options.Log.Debug("certificates changed meanwhile", zap.Error(err))
			r.wait = pause
		default:
			r.options.Log.Error("certificates not brought up to date", zap.Error(err))
			r.wait = min(pause<<min(failures, 10), r.options.Interval)
			failures++
		}
		if !periodic.Sleep(ctx, pause) || !periodic.Wait(ctx, r.wait-pause, r.options.Store.Changes()) {
			return nil
		}
	}
}

// look sees what is there and does what is due. It may be stopped at any point, and run anywhere else at the same time:
//
// A configuration is read before the Secret and written only if it was not written since. So the writer of a
// bundle knows a Secret at least as new as the one that the bundle before came from, and never takes back an authority
// that another leader has introduced.
func (r *Rotator) look(ctx context.Context) error {
	store, begun := r.options.Store, r.options.Now()
	configurations, unread := store.Configurations(ctx)
	r.reportMissing(configurations)
	secret, err := store.Secret(ctx)
	if err != nil {
		return errors.Join(unread, err)
	}
	now := r.options.Now() // the reads may have taken long
	read, faults := parse(secret.Data, r.plan.hosts, now)
	r.observe(read, configurations, unread == nil, now)
	c := sight{complete: unread == nil, live: live(configurations, now)}
	if r.standing != "" {
		c.stood = max(0, begun.Sub(r.since)) // what was read may be as old as begun, and was at first no older than since
	}
	r.wait = min(r.plan.due(read, c), r.options.Interval)
	next, changes, err := r.plan.step(read, c, now)
	if err != nil {
		return errors.Join(unread, err)
	}
	if err := r.write(ctx, secret, next, changes, faults); err != nil {
		return errors.Join(unread, err)
	}

	errs := []error{unread}
	bundle := next.bundle()
	for _, c := range configurations {
		if !c.Exists() || c.holds(bundle) {
			continue
		}
		if err := store.WriteBundle(ctx, c, bundle); err != nil {
			errs = append(errs, err)
			continue
		}
		r.options.Log.Info("caBundle written", zap.String(logkeys.Configuration, c.Name))
	}
	return errors.Join(errs...)
}

// observe keeps account of how long every configuration has held the bundle of a state, untouched.
func (r *Rotator) observe(s state, configurations []Configuration, complete bool, now time.Time) {
	stands, bundle, standing := complete, s.bundle(), s.parts()
	for _, c := range configurations {
		stands = stands && (!c.Exists() || c.holds(bundle))
		standing += c.Name + " " + c.Edition + "\n"
	}
	switch {
	case !stands:
		r.standing = ""
	case r.standing != standing:
		r.standing, r.since = standing, now
	}
}

// write makes a state the Secret's content, if it is not.
func (r *Rotator) write(ctx context.Context, secret Secret, s state, changes []change, faults []error) error {
	entries, err := s.encode()
	if err != nil {
		return fmt.Errorf("encode certificates: %w", err)
	}
	data := maps.Clone(secret.Data)
	if data == nil {
		data = map[string][]byte{}
	}
	for key, value := range entries {
		if value == nil {
			delete(data, key)
		} else {
			data[key] = value
		}
	}
	if maps.EqualFunc(data, secret.Data, bytes.Equal) {
		return nil
	}
	if err := r.options.Store.WriteSecret(ctx, Secret{Data: data, UID: secret.UID, Version: secret.Version}); err != nil {
		return err
	}
	if len(faults) > 0 {
		fault := errors.Join(faults...)
		r.options.Log.Warn("content of the certificate's secret replaced", zap.Error(fault))
		r.event(secret, corev1.EventTypeWarning, reasonReplaced, "Replace", fault.Error())
	}
	for _, c := range changes {
		r.options.Log.Info("certificates changed", zap.String(logkeys.Reason, c.reason), zap.String(logkeys.Certificate, c.note))
		r.event(secret, corev1.EventTypeNormal, c.reason, "Rotate", c.note)
		r.options.Metrics.rotated(c)
	}
	return nil
}

func (r *Rotator) event(secret Secret, kind, reason, action, note string) {
	if r.options.Events == nil {
		return
	}
	if len(note) > 1000 { // an event's note may have 1 kB
		note = note[:1000]
	}
	about := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: r.options.Names.Namespace, Name: r.options.Names.Secret, UID: types.UID(secret.UID)},
	}
	r.options.Events.Eventf(about, nil, kind, reason, action, "%s", note)
}

// reportMissing says once that a configuration is missing: it may be on its way, or not wanted.
func (r *Rotator) reportMissing(configurations []Configuration) {
	for _, c := range configurations {
		if missing := !c.Exists(); missing != r.missing[c.Name] {
			r.missing[c.Name] = missing
			if missing {
				r.options.Log.Warn("configuration missing", zap.String(logkeys.Configuration, c.Name))
			}
		}
	}
}
