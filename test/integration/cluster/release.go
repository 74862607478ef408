//go:build !windows

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
)

// Release is the chart's webhook in cluster mode: its rights, its configurations and its replicas. The replicas are
// processes of this machine behind a Balancer, and each has a Pod that nothing runs.
type Release struct {
	// Balancer is the Service.
	Balancer *Balancer
	// Replicas in the order in which they were started.
	Replicas []*Replica
	// Parameters is the file of parameters. The webhook reads it again when it changes.
	Parameters string
	// Config is that of the webhook's service account, with no more rights than the chart gives it.
	Config *rest.Config

	api     *APIServer
	options ReleaseOptions
	started int // replicas, so that each has a name of its own
	isCut   bool
}

// Replica is one of the webhook's processes.
type Replica struct {
	*Webhook
	// Link is its way to the API server.
	Link *Balancer
	// Pod is its pod's name.
	Pod string
}

// ReleaseOptions say how a release is to run.
type ReleaseOptions struct {
	// Webhook is the program.
	Webhook string
	// Chart is the rendered chart.
	Chart Chart
	// Dir receives files.
	Dir string
	// Parameters is YAML for --params; empty means the chart's.
	Parameters string
	// Replicas is how many are started; 0 means 1.
	Replicas int
	// Args are further arguments.
	Args []string
	// Before is called when everything but the replicas is there.
	Before func(context.Context, *Release) error
}

// Install returns when every replica is ready and the API server asks them. The caller uninstalls, also after an error
// if the release is not nil.
func (a *APIServer) Install(ctx context.Context, o ReleaseOptions) (*Release, error) {
	r := &Release{api: a, options: o, Parameters: filepath.Join(o.Dir, "parameters.yaml")}
	var err error
	if r.Balancer, err = StartBalancer(); err != nil {
		return nil, err
	}
	return r, r.install(ctx)
}

func (r *Release) install(ctx context.Context) error {
	if err := r.writeParameters(); err != nil {
		return err
	}
	if err := r.api.EnsureService(ctx); err != nil {
		return err
	}
	objects := r.options.Chart.Kinds("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "Secret", "Lease")
	for _, o := range objects {
		if err := r.api.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(o.DeepCopy()), client.FieldOwner("helm"), client.ForceOwnership); err != nil {
			return fmt.Errorf("apply %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	if err := r.Announce(ctx); err != nil {
		return err
	}
	if err := r.authenticate(ctx); err != nil {
		return err
	}
	if r.options.Before != nil {
		if err := r.options.Before(ctx, r); err != nil {
			return err
		}
	}
	for range max(1, r.options.Replicas) {
		if _, err := r.AddReplica(ctx); err != nil {
			return err
		}
	}
	return r.AwaitAsked(ctx)
}

// Announce creates the webhook configurations as helm does: nothing is asked by them before a replica has filled them in.
func (r *Release) Announce(ctx context.Context) error {
	for _, name := range []string{ObjectConfiguration, PolicyConfiguration} {
		c, err := r.options.Chart.Configuration(name, r.Balancer.Port(), nil)
		if err != nil {
			return err
		}
		if err := r.api.Client.Create(ctx, c); err != nil {
			return fmt.Errorf("create %s: %w", name, err)
		}
	}
	return nil
}

// Cut has the API server reach no replica, or reach them again.
func (r *Release) Cut(isCut bool) {
	r.isCut = isCut
	r.balance()
	r.Balancer.HangUp()
}

// AwaitAsked returns when every replica is ready and the API server asks them.
func (r *Release) AwaitAsked(ctx context.Context) error {
	for _, replica := range r.Replicas {
		if err := replica.AwaitReady(ctx); err != nil {
			return err
		}
	}
	return r.api.AwaitProbe(ctx, Refuses)
}

func (r *Release) writeParameters() error {
	text := r.options.Parameters
	if text == "" {
		var err error
		if text, err = r.options.Chart.Parameters(); err != nil {
			return err
		}
	}
	return r.SetParameters(text)
}

// SetParameters replaces the file of parameters. Nobody ever sees half of it.
func (r *Release) SetParameters(text string) error {
	next := r.Parameters + ".next"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		return fmt.Errorf("write parameters: %w", err)
	}
	if err := os.Rename(next, r.Parameters); err != nil {
		return fmt.Errorf("write parameters: %w", err)
	}
	return nil
}

// authenticate gets a token for the service account, as a kubelet does for its pods.
func (r *Release) authenticate(ctx context.Context) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: ServiceAccount}}
	token := &authenticationv1.TokenRequest{}
	if err := r.api.Client.SubResource("token").Create(ctx, account, token); err != nil {
		return fmt.Errorf("get a token: %w", err)
	}
	r.Config = rest.AnonymousClientConfig(r.api.Config)
	r.Config.BearerToken = token.Status.Token
	return nil
}

// AddReplica starts one more, with further arguments. It does not wait until it is ready.
func (r *Release) AddReplica(ctx context.Context, args ...string) (replica *Replica, err error) {
	name := fmt.Sprintf("%s-%d-%d", ServiceAccount, r.Balancer.Port(), r.started)
	r.started++
	replica = &Replica{Pod: name}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name},
		Spec: corev1.PodSpec{
			ServiceAccountName: ServiceAccount,
			Containers:         []corev1.Container{{Name: "webhook", Image: "example.com/webhook"}},
		},
	}
	if err := r.api.Client.Create(ctx, pod); err != nil {
		return nil, fmt.Errorf("create a replica's pod: %w", err)
	}
	if replica.Link, err = StartBalancer(hostOf(r.api.Config)); err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(r.options.Dir, name+".kubeconfig")
	if err := WriteKubeconfig(kubeconfig, r.Config, "https://"+replica.Link.Address()); err != nil {
		return nil, errors.Join(err, replica.Link.Close())
	}
	replica.Webhook, err = StartWebhook(ctx, name, r.options.Webhook, []string{"POD_NAMESPACE=" + Namespace, "POD_NAME=" + name},
		slices.Concat([]string{"--kubeconfig", kubeconfig, "--params", r.Parameters}, r.options.Args, args)...)
	if err != nil {
		return nil, errors.Join(err, replica.Link.Close())
	}
	r.Replicas = append(r.Replicas, replica)
	r.balance()
	return replica, nil
}

// StopReplica ends a replica as a kubelet does: first nobody is sent to it any more. Its pod goes with it.
func (r *Release) StopReplica(ctx context.Context, replica *Replica) error {
	for i, other := range r.Replicas {
		if other == replica {
			r.Replicas = append(r.Replicas[:i:i], r.Replicas[i+1:]...)
		}
	}
	r.balance()
	replica.Link.Release()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: replica.Pod}}
	return errors.Join(replica.Stop(stopLimit), replica.Link.Close(), r.api.Delete(ctx, pod))
}

func (r *Release) balance() {
	var backends []string
	for _, replica := range r.Replicas {
		if !r.isCut {
			backends = append(backends, replica.Address)
		}
	}
	r.Balancer.SetBackends(backends...)
}

// Uninstall ends the replicas and removes what the chart and they have made, also every policy.
func (r *Release) Uninstall(ctx context.Context) error {
	var faults []error
	for _, name := range []string{PolicyConfiguration, ObjectConfiguration} {
		c, err := r.options.Chart.Configuration(name, r.Balancer.Port(), nil)
		if err == nil {
			err = r.api.Delete(ctx, c)
		}
		faults = append(faults, err)
	}
	faults = append(faults, r.api.AwaitProbe(ctx, func(answer error) bool { return answer == nil }))
	for len(r.Replicas) > 0 {
		faults = append(faults, r.StopReplica(ctx, r.Replicas[0]))
	}
	faults = append(faults, r.Balancer.Close())
	for _, o := range r.options.Chart.Kinds("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "Secret", "Lease") {
		faults = append(faults, r.api.Delete(ctx, o.DeepCopy()))
	}
	for _, o := range []client.Object{&v1alpha1.PipePolicy{}, &v1alpha1.PolicyModule{}, &v1alpha1.ClusterPipeReport{}} {
		faults = append(faults, r.api.Client.DeleteAllOf(ctx, o))
	}
	faults = append(faults, r.api.Client.DeleteAllOf(ctx, &coordinationv1.Lease{}, client.InNamespace(Namespace)))
	reports := &v1alpha1.PipeReportList{}
	faults = append(faults, r.api.Client.List(ctx, reports))
	for i := range reports.Items {
		faults = append(faults, r.api.Delete(ctx, &reports.Items[i]))
	}
	return errors.Join(faults...)
}

// hostOf is the address of an API server, with or without a scheme in front.
func hostOf(config *rest.Config) string {
	if u, err := url.Parse(config.Host); err == nil && u.Host != "" {
		return u.Host
	}
	return config.Host
}

// Suspend takes back the order to ask the webhook about objects; the release goes on otherwise.
func (r *Release) Suspend(ctx context.Context) error {
	c, err := r.options.Chart.Configuration(ObjectConfiguration, r.Balancer.Port(), nil)
	if err != nil {
		return err
	}
	return r.api.Unregister(ctx, c)
}

// Resume gives the order again. The leader fills in the caBundle.
func (r *Release) Resume(ctx context.Context) error {
	c, err := r.options.Chart.Configuration(ObjectConfiguration, r.Balancer.Port(), nil)
	if err != nil {
		return err
	}
	return r.api.Register(ctx, c, Refuses)
}

// SuspendPolicies takes back the order to ask the webhook about policy objects. It takes effect a moment later.
func (r *Release) SuspendPolicies(ctx context.Context) error {
	c, err := r.options.Chart.Configuration(PolicyConfiguration, r.Balancer.Port(), nil)
	if err != nil {
		return err
	}
	return r.api.Delete(ctx, c)
}

// ResumePolicies gives the order again, a moment later.
func (r *Release) ResumePolicies(ctx context.Context) error {
	c, err := r.options.Chart.Configuration(PolicyConfiguration, r.Balancer.Port(), nil)
	if err != nil {
		return err
	}
	if err := r.api.Client.Create(ctx, c); err != nil {
		return fmt.Errorf("create %s: %w", c.Name, err)
	}
	return nil
}
