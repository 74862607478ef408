package hooks

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/internal/admission"

	"github.com/pipeguard/pipeguard/internal/entries"
)

// owner is the field manager of the rules.
const owner = client.FieldOwner("pipeguard-rules")

// Cluster is what a Keeper needs of the API server.
type Cluster interface {
	// Configuration returns a configuration as it is stored now, nil if there is none.
	Configuration(ctx context.Context, name string) (*admissionregistrationv1.ValidatingWebhookConfiguration, error)
	// WriteRules replaces the rules of the entries at these places and nothing else. It fails if the configuration has changed
	// since it was read.
	WriteRules(ctx context.Context, c *admissionregistrationv1.ValidatingWebhookConfiguration, rules map[int]entries.Rules) error
	// Canary returns the API server's answer to the canary in a namespace. Nothing is stored.
	Canary(ctx context.Context, namespace string) error
}

// NewCluster returns the Cluster behind two clients: one that reads what is stored, and one that writes.
func NewCluster(reader client.Reader, writer client.Writer) Cluster { return &cluster{reader, writer} }

type cluster struct {
	reader client.Reader
	writer client.Writer
}

func (c *cluster) Configuration(ctx context.Context, name string) (*admissionregistrationv1.ValidatingWebhookConfiguration, error) {
	out := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := c.reader.Get(ctx, client.ObjectKey{Name: name}, out); apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // there is none, as documented
	} else if err != nil {
		return nil, fmt.Errorf("read configuration %s: %w", name, err)
	}
	return out, nil
}

func (c *cluster) WriteRules(ctx context.Context, to *admissionregistrationv1.ValidatingWebhookConfiguration, rules map[int]entries.Rules) error {
	patch, err := rulesPatch(to.ResourceVersion, rules)
	if err != nil {
		return fmt.Errorf("write rules of %s: %w", to.Name, err)
	}
	object := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	object.Name = to.Name
	if err := c.writer.Patch(ctx, object, client.RawPatch(types.JSONPatchType, patch), owner); err != nil {
		return fmt.Errorf("write rules of %s: %w", to.Name, err)
	}
	return nil
}

// rulesPatch is the JSON patch (RFC 6902) that writes rules. It names entries by their places, so an API server refuses it with
// a conflict if the configuration has another version.
func rulesPatch(version string, rules map[int]entries.Rules) ([]byte, error) {
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	operations := []operation{{"replace", "/metadata/resourceVersion", version}}
	for _, i := range slices.Sorted(maps.Keys(rules)) {
		operations = append(operations, operation{"add", fmt.Sprintf("/webhooks/%d/rules", i), rules[i]})
	}
	return json.Marshal(operations)
}

func (c *cluster) Canary(ctx context.Context, namespace string) error {
	return c.writer.Create(ctx, admission.APICanary(namespace), client.DryRunAll, owner)
}
