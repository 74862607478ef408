package reviewcmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/policysource"
	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/policyset"
)

// Cluster is the cluster that flags name. This package reaches none itself.
type Cluster interface {
	// AddFlags adds the flags that name a cluster, without the namespace.
	AddFlags(cmd *cobra.Command)
	// Connect opens the cluster. namespace is that of the command line, or empty.
	Connect(ctx context.Context, namespace string) (Live, error)
}

// Live is an open cluster, for one goroutine.
type Live interface {
	admission.NamespaceLabels
	// Server is the address of the API server.
	Server() string
	// Namespace is that of the command line, else that of the context.
	Namespace() string
	// Policies are the parameters and the policy objects that decide.
	Policies(ctx context.Context) (policyset.Sources, error)
	// Revisions are those by which the replicas of the webhook decide, each once: at least one, or an error.
	Revisions(ctx context.Context) ([]string, error)
	// Faults join the errors of Labels, which returns none.
	Faults() error
	// Object reads an object as JSON.
	Object(ctx context.Context, kind metav1.APIResource, namespace, name string) ([]byte, error)
}

// clusterFlags are those that Cluster adds and that mean nothing without a cluster.
var clusterFlags = []string{"kubeconfig", "context", "guard-namespace"}

// origin is the cluster from which policies came; nil for files.
type origin struct{ Live }

// liveReport is the cluster's part of the JSON form.
type liveReport struct {
	Server    string   `json:"server"`
	Revisions []string `json:"revisions"`
	// Same is true if all replicas decide by the revision that judged here.
	Same bool `json:"same"`
}

// sources loads the policies from files, or from the cluster with --live.
func (o *reviewOptions) sources(cmd *cobra.Command) (policysource.Sources, *origin, error) {
	if !o.isLive {
		for _, name := range clusterFlags {
			if cmd.Flags().Changed(name) {
				return policysource.Sources{}, nil, fmt.Errorf("--%s goes with --live", name)
			}
		}
		s, err := policysource.Load(o.policyDir, o.with, cmd.InOrStdin())
		return s, nil, err
	}
	if o.with.Params != "" || len(o.with.Objects) > 0 {
		return policysource.Sources{}, nil, errors.New("--live takes parameters and policies from the cluster: leave out --params and --policies")
	}
	s, from, err := fromCluster(cmd.Context(), o.cluster, o.policyDir, o.namespace)
	if err == nil && o.namespace == "" {
		o.fallback = from.Namespace()
	}
	return s, from, err
}

// fromCluster reads the policies of a cluster.
func fromCluster(ctx context.Context, cluster Cluster, policyDir, namespace string) (policysource.Sources, *origin, error) {
	live, err := cluster.Connect(ctx, namespace)
	if err != nil {
		return policysource.Sources{}, nil, err
	}
	objects, err := live.Policies(ctx)
	if err != nil {
		return policysource.Sources{}, nil, err
	}
	s, err := policysource.Combine(policyDir, objects)
	return s, &origin{live}, err
}

// namespaces knows the labels of namespaces; nil if there is no cluster.
func (f *origin) namespaces() admission.NamespaceLabels {
	if f == nil {
		return nil
	}
	return f.Live
}

// compare fills in the cluster's part of a report, and says why the report may not be the cluster's answer.
func (f *origin) compare(ctx context.Context, report *reviewReport) error {
	if f == nil {
		return nil
	}
	var doubt error
	report.Live, doubt = f.report(ctx, report.Revision)
	return doubt
}

// report compares the revision that judged here with those of the cluster.
func (f *origin) report(ctx context.Context, revision string) (*liveReport, error) {
	out := &liveReport{Server: f.Server(), Revisions: []string{}}
	revisions, err := f.Revisions(ctx)
	if err != nil {
		return out, errors.Join(fmt.Errorf("whether the cluster decides by the same policies is not known: %w", err), f.Faults())
	}
	out.Revisions, out.Same = revisions, len(revisions) == 1 && revisions[0] == revision
	if !out.Same {
		return out, errors.Join(fmt.Errorf("the cluster may answer otherwise: its replicas decide by revision %s, and here %s decides; the webhook may be of another release, have a policy directory (--policy-dir), or have refused its newest policies",
			strings.Join(revisions, " and "), revision), f.Faults())
	}
	return out, f.Faults()
}
