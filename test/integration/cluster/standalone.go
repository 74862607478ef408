//go:build !windows

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// stopLimit is longer than a webhook lets reviews in flight finish.
const stopLimit = 45 * time.Second

// Standalone is a webhook that knows nothing of the cluster, and the API server's order to ask it.
type Standalone struct {
	*Webhook
	// Parameters is the file of parameters. The webhook reads it again when it changes.
	Parameters string

	api           *APIServer
	configuration client.Object
}

// StandaloneOptions say how a standalone webhook is to run.
type StandaloneOptions struct {
	// Webhook is the program.
	Webhook string
	// Chart has the webhook configuration.
	Chart Chart
	// Dir receives files.
	Dir string
	// Parameters is YAML for --params; empty means the defaults.
	Parameters string
	// Args are further arguments.
	Args []string
}

// StartStandalone returns when the webhook is ready and the API server asks it.
func (a *APIServer) StartStandalone(ctx context.Context, o StandaloneOptions) (*Standalone, error) {
	authority := filepath.Join(o.Dir, "ca.pem")
	config := filepath.Join(o.Dir, "webhook.yaml")
	if err := WriteWebhookConfig(config, "certificate: {hosts: ["+ServiceHost+"]}"); err != nil {
		return nil, err
	}
	args := append([]string{"--standalone", "--config", config, "--write-ca", authority}, o.Args...)
	s := &Standalone{api: a, Parameters: filepath.Join(o.Dir, "parameters.yaml")}
	if o.Parameters != "" {
		if err := os.WriteFile(s.Parameters, []byte(o.Parameters), 0o600); err != nil {
			return nil, fmt.Errorf("write parameters: %w", err)
		}
		args = append(args, "--params", s.Parameters)
	}
	var err error
	if s.Webhook, err = StartWebhook(ctx, "webhook --standalone", o.Webhook, nil, args...); err != nil {
		return nil, err
	}
	if err := s.register(ctx, o.Chart, authority); err != nil {
		s.Kill()
		return nil, err
	}
	return s, nil
}

func (s *Standalone) register(ctx context.Context, chart Chart, authority string) error {
	if err := s.AwaitReady(ctx); err != nil {
		return err
	}
	ca, err := os.ReadFile(authority) // #nosec G304 -- a file of the tests
	if err != nil {
		return fmt.Errorf("read the webhook's authority: %w", err)
	}
	configuration, err := chart.Configuration(ObjectConfiguration, portOf(s.Address), ca)
	if err != nil {
		return err
	}
	configuration.Name = "standalone" // the leader of a release looks after the chart's
	s.configuration = configuration
	return s.api.Register(ctx, configuration, Refuses)
}

// Stop takes the order back and ends the webhook.
func (s *Standalone) Stop(ctx context.Context) error {
	return errors.Join(s.api.Unregister(ctx, s.configuration), s.Webhook.Stop(stopLimit))
}

// Delete removes objects; those that are not there are fine.
func (a *APIServer) Delete(ctx context.Context, objects ...client.Object) error {
	var faults []error
	for _, o := range objects {
		if err := a.Client.Delete(ctx, o); err != nil && !apierrors.IsNotFound(err) {
			faults = append(faults, fmt.Errorf("delete %T %s: %w", o, o.GetName(), err))
		}
	}
	return errors.Join(faults...)
}
