package witness

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/audit/evidence"
)

// Reported tells the keys that nodes name in their reports. It is to read past every cache.
type Reported struct{ Live client.Reader }

// Key returns the key of a node's log by its own word; no key for a log that is no node's, and for a node that does not exist, has
// not reported, or names no key of its own log.
func (r Reported) Key(ctx context.Context, origin string) (string, error) {
	name, ok := nodeOf(origin)
	if !ok {
		return "", nil
	}
	var report v1alpha1.GuardedNode
	err := r.Live.Get(ctx, client.ObjectKey{Name: name}, &report)
	if apierrors.IsNotFound(err) || err == nil && report.AuditKey == "" {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("GuardedNode %s: %w", name, err)
	}
	keys, err := evidence.ParseKeys(report.AuditKey)
	if err != nil || !isKeyOf(keys, origin) {
		return "", nil //nolint:nilerr // what a node says wrongly is no key
	}
	node := &metav1.PartialObjectMetadata{}
	node.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
	if err := r.Live.Get(ctx, client.ObjectKey{Name: name}, node); apierrors.IsNotFound(err) {
		return "", nil // what is remembered is bounded by the nodes that there are
	} else if err != nil {
		return "", fmt.Errorf("Node %s: %w", name, err) //nolint:staticcheck // a name
	}
	return keys.Describe()[0].Key, nil
}

// nodeOf returns the node whose log has an origin.
func nodeOf(origin string) (string, bool) {
	name, ok := strings.CutPrefix(origin, evidence.OriginPrefix)
	return name, ok && len(validation.IsDNS1123Subdomain(name)) == 0
}

// isKeyOf says whether these are one key, of the log with this origin.
func isKeyOf(keys evidence.Keys, origin string) bool {
	all := keys.Describe()
	return len(all) == 1 && all[0].Kind == "log" && all[0].Name == origin
}
