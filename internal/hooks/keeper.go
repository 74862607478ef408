package hooks

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pipeguard/pipeguard/internal/entries"
	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/periodic"
)

const (
	// period is the time between two canaries that are refused as they must be, and between two looks at configurations that
	// nobody changes.
	period = time.Minute
	// retry is the time between two looks while something is not as it should be.
	retry = 5 * time.Second
	// pause is between two looks, however often the configurations change: another program may write other rules.
	pause = time.Second
	// settle is how long an answer to the canary that proves nothing is waited out: the API server takes a moment to take over a
	// configuration, and what refuses or admits a canary for good must not keep everything open.
	settle = 30 * time.Second
)

// Reasons of events.
const (
	reasonInForce  = "InForce"
	reasonRestored = "RulesRestored"
	reasonChanged  = "ConfigurationChanged"
	reasonCanary   = "CanaryNotRefused"
)

// Keeper keeps the configurations in force, on the leader.
type Keeper struct {
	options Options

	// What follows belongs to one term.
	begun   map[types.UID]bool // configurations that were seen in force
	held    map[string]bool    // entries that had their rules, by the UID of their configuration and by name
	told    map[string]bool    // what is wrong and was said, by a key of its own
	last    entries.Answer     // of the canary
	asked   time.Time          // when that was
	edition string             // of the configuration that it was asked by
	again   bool               // ask again soon: the API server may have gone by an older configuration
	staged  time.Time          // when the first entries were seen with their rules, while the others wait
	said    bool               // that the configuration for objects is in force
	holding string             // what was last said to keep them waiting
}

// NewKeeper returns an error that names every fault of the options.
func NewKeeper(o Options) (*Keeper, error) {
	if err := o.complete(); err != nil {
		return nil, fmt.Errorf("keep webhook configurations: %w", err)
	}
	return &Keeper{options: o}, nil
}

// Start works until ctx is done, and can be called again after that. No fault of the cluster ends it: it reports and tries again.
func (k *Keeper) Start(ctx context.Context) error {
	*k = Keeper{options: k.options, begun: map[types.UID]bool{}, held: map[string]bool{}, told: map[string]bool{}}
	defer k.options.Metrics.ends()
	for {
		wait := k.look(ctx)
		if !periodic.Sleep(ctx, pause) || !periodic.Wait(ctx, wait-pause, k.options.Changes) {
			return nil
		}
	}
}

// look sees what is there, does what is due, and returns the time until the next look, if nothing changes before.
func (k *Keeper) look(ctx context.Context) time.Duration {
	wait, err := k.keep(ctx)
	switch {
	case err == nil || ctx.Err() != nil:
		return wait
	case apierrors.IsConflict(err):
		k.options.Log.Debug("configuration changed meanwhile", zap.Error(err))
		return pause
	}
	k.options.Log.Error("webhook configurations not kept", zap.Error(err))
	return retry
}

func (k *Keeper) keep(ctx context.Context) (time.Duration, error) {
	var objects *admissionregistrationv1.ValidatingWebhookConfiguration
	if k.options.Objects != "" {
		var err error
		if objects, err = k.read(ctx, k.options.Objects); err != nil {
			return 0, err
		}
	}
	policies, err := k.read(ctx, k.options.Policies)
	if err != nil {
		return 0, err
	}
	waits := !k.hasBegun(objects)
	if waits {
		ready, err := k.begins(ctx, objects)
		if err != nil {
			return pause, err
		}
		waits = !ready
	} else {
		k.holding = ""
	}
	wrote := false
	for _, c := range []*admissionregistrationv1.ValidatingWebhookConfiguration{objects, policies} {
		begun := k.hasBegun(c)
		if c == nil || waits && !begun {
			continue
		}
		written, err := k.fill(ctx, c, func(string) bool { return true })
		if err != nil {
			return 0, err
		}
		if wrote = wrote || written; written && !begun {
			k.event(c, corev1.EventTypeNormal, reasonInForce, "the API server is told to ask")
		}
	}
	if waits {
		return pause, nil
	}
	if wrote {
		return pause, nil
	}
	if objects != nil && !k.said {
		k.said = true
		k.options.InForce()
	}
	return k.watch(ctx, objects), nil
}

// hasBegun reports whether a configuration has come into force, even if another hand has taken all of its rules away since. One that was
// installed anew has not.
func (k *Keeper) hasBegun(c *admissionregistrationv1.ValidatingWebhookConfiguration) bool {
	return c != nil && (isBegun(c) || k.begun[c.UID])
}

// read returns a configuration after it has reported how it is.
func (k *Keeper) read(ctx context.Context, name string) (*admissionregistrationv1.ValidatingWebhookConfiguration, error) {
	c, err := k.options.Cluster.Configuration(ctx, name)
	if err != nil {
		return nil, err
	}
	if k.isNews(name, c == nil) {
		k.options.Log.Warn("configuration missing", zap.String(logkeys.Configuration, name))
	}
	if c == nil {
		k.options.Metrics.saw(name, false, nil)
		return nil, nil //nolint:nilnil // there is none
	}
	now := entries.Changed(c, k.options.Service)
	k.options.Metrics.saw(name, isComplete(c), now)
	for _, part := range entries.Parts() {
		if k.isNews(name+" "+part, now[part]) {
			k.options.Log.Error("another hand has changed a webhook configuration", zap.String(logkeys.Configuration, name), zap.String(logkeys.Part, part))
			k.event(c, corev1.EventTypeWarning, reasonChanged, "its "+part+" are not as the chart made them")
		}
	}
	for _, e := range c.Webhooks {
		if _, known := entries.RulesOf(e.Name); k.isNews(name+"/"+e.Name, !known) {
			k.options.Log.Warn("an entry of another release gets no rules", zap.String(logkeys.Configuration, name), zap.String(logkeys.Name, e.Name))
		}
	}
	return c, nil
}

// isNews reports whether something is wrong that was not so before. It is said once.
func (k *Keeper) isNews(key string, isWrong bool) bool {
	was := k.told[key]
	k.told[key] = isWrong
	return isWrong && !was
}

// begins decides whether the API server may be told to ask about everything. It waits for this replica to serve, and then until the API
// server has shown, by entries about what runs nothing, that it reaches one.
func (k *Keeper) begins(ctx context.Context, objects *admissionregistrationv1.ValidatingWebhookConfiguration) (bool, error) {
	if err := k.options.Serves(); err != nil {
		return k.hold("no replica serves yet", err), nil
	}
	if err := k.options.Before(ctx); err != nil {
		return k.hold("what must be there before is not", err), nil
	}
	if objects == nil || k.options.CanaryNamespace == "" {
		return true, nil
	}
	if wrote, err := k.fill(ctx, objects, entries.IsFirst); wrote || err != nil {
		k.staged = k.options.Now()
		return false, err
	}
	if k.staged.IsZero() { // an earlier leader's
		k.staged = k.options.Now()
	}
	err := k.ask(ctx)
	switch k.last {
	case entries.Refused:
		return true, nil
	case entries.Unreachable:
		k.staged = k.options.Now() // it goes by the configuration
		return k.hold("the API server cannot call the webhook", err), nil
	case entries.Admitted, entries.Other, entries.None, entries.Undecided, entries.Floor: // which prove nothing
	}
	return k.options.Now().Sub(k.staged) >= settle || k.hold("the API server has yet to ask a replica", err), nil
}

// hold says, once, what keeps the configurations from coming into force, and returns false.
func (k *Keeper) hold(why string, err error) bool {
	if k.holding != why {
		k.holding = why
		k.options.Log.Info("webhook configurations wait to come into force", zap.String(logkeys.Reason, why), zap.Error(err))
	}
	return false
}

// fill gives those of the entries their rules that are wanted and have others or none. It reports whether it wrote.
func (k *Keeper) fill(ctx context.Context, c *admissionregistrationv1.ValidatingWebhookConfiguration, wanted func(entry string) bool) (bool, error) {
	if isBegun(c) {
		k.begun[c.UID] = true
	}
	lacks := lacking(c, wanted)
	var restored []string
	for i, e := range c.Webhooks {
		key := string(c.UID) + "/" + e.Name
		if _, ok := lacks[i]; ok && k.held[key] {
			restored = append(restored, e.Name)
		} else if !ok && len(e.Rules) > 0 {
			k.held[key] = true
		}
	}
	if len(lacks) == 0 {
		return false, nil
	}
	if err := k.options.Cluster.WriteRules(ctx, c, lacks); err != nil {
		return false, err
	}
	for i := range lacks {
		k.held[string(c.UID)+"/"+c.Webhooks[i].Name] = true
		if !entries.IsFirst(c.Webhooks[i].Name) {
			k.begun[c.UID] = true
		}
	}
	if len(restored) > 0 {
		names := strings.Join(restored, ", ")
		k.options.Metrics.restored.WithLabelValues(c.Name).Inc()
		k.options.Log.Error("rules put back that another hand had changed", zap.String(logkeys.Configuration, c.Name), zap.String(logkeys.Name, names))
		k.event(c, corev1.EventTypeWarning, reasonRestored, "rules put back that another hand had changed: "+names)
		return true, nil
	}
	k.options.Log.Info("rules written", zap.String(logkeys.Configuration, c.Name), zap.Int(logkeys.Written, len(lacks)))
	return true, nil
}

// watch sends the canary when it is due.
func (k *Keeper) watch(ctx context.Context, objects *admissionregistrationv1.ValidatingWebhookConfiguration) time.Duration {
	if objects == nil || k.options.CanaryNamespace == "" {
		return period
	}
	edition := fmt.Sprintf("%s/%d", objects.UID, objects.Generation)
	since, was := k.options.Now().Sub(k.asked), k.last
	isNew := edition != k.edition
	if !isNew && !k.again && was == entries.Refused && since < period {
		return period - since
	}
	k.edition, k.again = edition, isNew
	if err := k.ask(ctx); k.last != was && k.last != entries.Refused {
		k.options.Log.Error("the canary was not refused by the webhook", zap.String(logkeys.Reason, string(k.last)), zap.Error(err))
		k.event(objects, corev1.EventTypeWarning, reasonCanary, "the canary in "+k.options.CanaryNamespace+": "+string(k.last))
	} else if k.last != was {
		k.options.Log.Info("the canary is refused", zap.String(logkeys.Reason, string(k.last)), zap.String(logkeys.Namespace, k.options.CanaryNamespace))
	}
	if k.again || k.last != entries.Refused {
		return retry
	}
	return period
}

// ask sends the canary, and returns the answer's text.
func (k *Keeper) ask(ctx context.Context) error {
	err := k.options.Cluster.Canary(ctx, k.options.CanaryNamespace)
	k.last, k.asked = entries.AnswerTo(err, entries.Canary), k.options.Now()
	if k.last == entries.Undecided {
		k.last = entries.Other
	}
	k.options.Metrics.answered(k.last)
	return err
}

func (k *Keeper) event(c *admissionregistrationv1.ValidatingWebhookConfiguration, kind, reason, note string) {
	if k.options.Events != nil {
		k.options.Events.Eventf(c, nil, kind, reason, "Keep", "%s", note)
	}
}
