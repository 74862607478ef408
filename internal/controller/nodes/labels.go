package nodes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/served"
)

const (
	// labelGrace is how long a Node keeps the label of a pipe that is not served any more. A DaemonSet that selects the label would lose its pods
	// otherwise whenever the service is restarted.
	labelGrace = 5 * time.Minute
	// labelEvery is the least time between two writes to one Node, whatever its reports say.
	labelEvery = time.Minute
	// maxLabelled bounds the Nodes that are written in one count.
	maxLabelled = 50
	// relistLabels is how often the Nodes that may have labels are read: others may have changed what was written.
	relistLabels = 5 * time.Minute
	// labelPage is how many are read at a time.
	labelPage = 500
)

// labeller keeps the labels of Nodes that say which pipes they serve, and touches no other label. It runs on the leader.
type labeller struct {
	live   client.Reader
	writer client.Writer
	log    *zap.Logger

	nodes  map[string]*labelled // that have such labels, or had or want some lately
	listed time.Time
}

// labelled is what is known of the labels of one Node.
type labelled struct {
	has     map[string]string    // labels of ours, as they were read last
	unasked map[string]time.Time // by key: since when it is not wanted
	tried   time.Time            // to write
}

// isOurs says whether a label is one that the labeller keeps.
func isOurs(key string) bool {
	return key == v1alpha1.LabelServesPipes || strings.HasPrefix(key, v1alpha1.LabelPipePrefix)
}

// ours are those of the labels of a Node.
func ours(labels map[string]string) map[string]string {
	out := maps.Clone(labels)
	maps.DeleteFunc(out, func(key, _ string) bool { return !isOurs(key) })
	return out
}

// reset forgets everything: between two terms, another replica may have written.
func (l *labeller) reset() { l.nodes, l.listed = nil, time.Time{} }

// label writes the Nodes whose labels are not as their reports say. It returns how many it wrote, and whether some are left for the next count.
func (l *labeller) label(ctx context.Context, found *snapshot) (written int, more bool, err error) {
	if l.nodes == nil || found.now.Sub(l.listed) >= relistLabels {
		if err := l.list(ctx); err != nil {
			return 0, false, fmt.Errorf("list labelled Nodes: %w", err)
		}
		l.listed = found.now
	}
	wanted := found.wantedLabels()
	for name := range wanted {
		if l.nodes[name] == nil {
			l.nodes[name] = &labelled{}
		}
	}
	due := map[string]map[string]any{}
	for name, n := range l.nodes {
		change := n.change(wanted[name], found.now)
		switch {
		case len(change) > 0 && found.now.Sub(n.tried) >= labelEvery:
			due[name] = change
		case len(change) == 0 && len(n.has) == 0 && wanted[name] == nil:
			delete(l.nodes, name)
		}
	}
	names := slices.SortedFunc(maps.Keys(due), func(a, b string) int { // those that have waited longest
		return cmp.Or(l.nodes[a].tried.Compare(l.nodes[b].tried), cmp.Compare(a, b))
	})
	var faults []error
	for _, name := range names[:min(len(names), maxLabelled)] {
		if err := l.write(ctx, name, due[name], found.now); err != nil {
			faults = append(faults, fmt.Errorf("labels of Node %s: %w", name, err))
		}
	}
	if len(faults) > maxFaults {
		faults = append(faults[:maxFaults], fmt.Errorf("and %d more", len(faults)-maxFaults))
	}
	return min(len(names), maxLabelled), len(names) > maxLabelled, errors.Join(faults...)
}

// maxFaults bounds the faults of one count that are told.
const maxFaults = 3

// wantedLabels are the labels of the Nodes that are alive and serve pipes, by name.
func (c *snapshot) wantedLabels() map[string]map[string]string {
	out := map[string]map[string]string{}
	for i := range c.nodes {
		n := &c.nodes[i]
		pipes, _ := served.By(&n.NodeReport)
		if len(pipes) == 0 || c.isSilent(n) {
			continue
		}
		labels := map[string]string{v1alpha1.LabelServesPipes: "true"}
		for _, pipe := range pipes {
			labels[v1alpha1.LabelPipePrefix+pipe] = v1alpha1.LabelPipeServed
		}
		out[n.Name] = labels
	}
	return out
}

// change returns the labels that must become others, nil for those that must go. What is not wanted stays for a while; the label of all that
// serve a pipe goes with the last of the others.
func (n *labelled) change(wanted map[string]string, now time.Time) map[string]any {
	out := map[string]any{}
	maps.DeleteFunc(n.unasked, func(key string, _ time.Time) bool { _, ok := n.has[key]; return !ok })
	for key, value := range wanted {
		delete(n.unasked, key)
		if n.has[key] != value {
			out[key] = value
		}
	}
	for key := range n.has {
		if _, ok := wanted[key]; ok {
			continue
		}
		if n.unasked == nil {
			n.unasked = map[string]time.Time{}
		}
		since, known := n.unasked[key]
		if !known {
			n.unasked[key] = now
		} else if now.Sub(since) >= labelGrace {
			out[key] = nil
		}
	}
	stays := func(key string) bool { _, ok := out[key]; return !ok && key != v1alpha1.LabelServesPipes }
	if value, ok := out[v1alpha1.LabelServesPipes]; ok && value == nil && slices.ContainsFunc(slices.Collect(maps.Keys(n.has)), stays) {
		delete(out, v1alpha1.LabelServesPipes)
	}
	return out
}

// mayBeLabelled select, each Node once, those that may have labels of ours: a label of a pipe may be left where another hand has taken away
// the one of all, and Nodes cannot be selected by a prefix.
func mayBeLabelled() [2]string {
	return [2]string{corev1.LabelOSStable + "=windows", corev1.LabelOSStable + "!=windows," + v1alpha1.LabelServesPipes}
}

// list reads the Nodes that have labels of ours.
func (l *labeller) list(ctx context.Context) error {
	next := map[string]*labelled{}
	for name, n := range l.nodes {
		next[name] = &labelled{unasked: n.unasked, tried: n.tried}
	}
	for _, text := range mayBeLabelled() {
		selector, err := labels.Parse(text)
		if err != nil {
			return err
		}
		if err := l.pages(ctx, selector, func(name string, has map[string]string) {
			if next[name] == nil {
				next[name] = &labelled{}
			}
			next[name].has = has
		}); err != nil {
			return err
		}
	}
	l.nodes = next
	return nil
}

// pages calls found with each of the selected Nodes that has labels of ours.
func (l *labeller) pages(ctx context.Context, selector labels.Selector, found func(name string, has map[string]string)) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	for {
		if err := l.live.List(ctx, list, client.MatchingLabelsSelector{Selector: selector}, client.Limit(labelPage), client.Continue(list.Continue)); err != nil {
			return err
		}
		for _, o := range list.Items {
			if has := ours(o.Labels); len(has) > 0 {
				found(o.Name, has)
			}
		}
		if list.Continue == "" {
			return nil
		}
	}
}

// write changes labels of one Node. One that is gone has none.
func (l *labeller) write(ctx context.Context, name string, change map[string]any, now time.Time) error {
	n := l.nodes[name]
	n.tried = now
	text, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": change}})
	if err != nil {
		return err
	}
	node := &metav1.PartialObjectMetadata{}
	node.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
	node.Name = name
	err = l.writer.Patch(ctx, node, client.RawPatch(types.MergePatchType, text), fieldOwner)
	if apierrors.IsNotFound(err) {
		n.has = nil
		return nil
	}
	if err != nil {
		return err
	}
	n.has = ours(node.Labels)
	l.log.Debug("Node labelled", zap.String(logkeys.Name, name))
	return nil
}
