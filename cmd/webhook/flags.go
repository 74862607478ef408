package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap/zapcore"

	"github.com/pipeguard/pipeguard/internal/version"
)

// clusterOptions are those of a webhook that runs in a cluster.
type clusterOptions struct {
	kubeconfig          string
	podNamespace        string
	podName             string
	serviceName         string
	certSecret          string
	webhookConfig       string
	policyWebhookConfig string
	scanInterval        time.Duration
	leaderElect         bool
	bundles             bundleOptions
	witness             witnessOptions
}

// options are the command line.
type options struct {
	standalone bool
	cluster    clusterOptions

	listenAddress  string
	metricsAddress string
	healthAddress  string

	certDir      string
	certFile     string
	keyFile      string
	certHosts    []string
	writeCA      string
	clientCAFile string

	policyDir  string
	params     string
	namespaces string

	auditLog      string
	auditRequired bool
	logLevel      zapcore.Level
}

const help = `webhook answers AdmissionReviews (admission.k8s.io/v1) over HTTPS at /validate. It judges pods, the templates of
workloads and PersistentVolumes on CREATE and UPDATE and refuses those that would give a container a guarded Windows pipe
that it may not have.

In a cluster it also follows PipePolicy and PolicyModule objects (pipeguard.dev/v1alpha1), judges them at
/validate-policies, writes their status, makes and rotates its certificate, and reports what exists already. One replica,
the leader, does the writing; all of them answer. The chart sets what it needs.

With --bundle-key the leader also signs the PipePolicies that decide here for the nodes, one bundle for each pool, and keeps
them in ConfigMaps; every replica serves them at /bundles/POOL beside /validate (--bundle-serve). A key that cannot be read keeps bundles
from being made, and no review from being answered.

With --witness it cosigns checkpoints of the nodes' audit logs at /witness (C2SP tlog-witness), each only if it contains what was
cosigned before, and keeps the last one of each log in a ConfigMap pipeguard-witness-HASH: so a log that was rolled back is found. A
key that cannot be read keeps checkpoints from being cosigned, and no review from being answered.

With --standalone it needs no cluster: policies come from the program itself or from --policy-dir, labels of namespaces
from --namespaces, and, unless files are given, it makes a certificate of its own (--write-ca lets clients verify it).

Policies, parameters and certificates are read again when their files change. What does not compile, does not pass its
own tests or lets a known breach through is reported and not used; what was active before goes on deciding.

Beside /validate it serves /healthz and /readyz (--health-probe-bind-address) and /metrics (--metrics-bind-address),
both without TLS. Ready means that a policy is active, that reviews which must be refused were refused just now and, in a
cluster, that the API server can verify the certificate by the webhook configuration as it stands.

Exit codes: 0 stopped as asked (SIGTERM, SIGINT), 1 could not start or failed, 2 wrong command line.`

const example = `  # Try it: judge pods on this machine, and trust the certificate it makes
  webhook --standalone --listen-address 127.0.0.1:9443 --write-ca ca.pem
  curl --cacert ca.pem -H 'Content-Type: application/json' --data @review.json https://127.0.0.1:9443/validate

  # Own policies, parameters and certificate
  webhook --standalone --policy-dir policies --params parameters.yaml --cert-dir /etc/webhook/certs`

func newCommand(serve func(options) error) *cobra.Command {
	var o options
	level := "info"
	cmd := &cobra.Command{
		Use:           "webhook [flags]",
		Short:         "Refuse objects that would give a pod a guarded Windows pipe it may not have",
		Long:          help,
		Example:       example,
		Version:       version.String("webhook"),
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(level); err != nil {
				return fmt.Errorf("%w\nRun 'webhook --help' for usage", err)
			}
			return serve(o)
		},
	}
	cmd.AddCommand(newProbe())
	cmd.SetVersionTemplate("{{.Version}}\n")
	cmd.CompletionOptions.DisableDefaultCmd = true
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVar(&o.standalone, "standalone", false, "run without a cluster")
	f.StringVar(&o.cluster.kubeconfig, "kubeconfig", "", "`file` to reach the cluster with (default: that of the pod, else $KUBECONFIG)")
	f.StringVar(&o.cluster.podNamespace, "pod-namespace", os.Getenv("POD_NAMESPACE"), "`namespace` of this pod and of all that it writes for itself (default $POD_NAMESPACE)")
	f.StringVar(&o.cluster.podName, "pod-name", os.Getenv("POD_NAME"), "`name` of this pod, by which replicas are told apart (default $POD_NAME)")
	f.StringVar(&o.cluster.serviceName, "service-name", "pipeguard-webhook", "`name` of the Service that the API server calls")
	f.StringVar(&o.cluster.certSecret, "cert-secret", "pipeguard-webhook-cert", "`name` of the Secret that keeps the certificate and its authority")
	f.StringVar(&o.cluster.webhookConfig, "webhook-config", "pipeguard-webhook", "`name` of the ValidatingWebhookConfiguration for objects")
	f.StringVar(&o.cluster.policyWebhookConfig, "policy-webhook-config", "pipeguard-policies", "`name` of the ValidatingWebhookConfiguration for policy objects")
	f.DurationVar(&o.cluster.scanInterval, "scan-interval", 10*time.Minute, "time between two scans of what exists; each new policy starts one as well")
	f.BoolVar(&o.cluster.leaderElect, "leader-elect", true, "let one replica alone write; without it every replica does")
	f.StringVar(&o.cluster.bundles.key, "bundle-key", "", "`file` of a private key, as \"pipeguard keys generate\" makes it and read again when it changes: sign PipePolicies for nodes (default: they get none)")
	f.StringSliceVar(&o.cluster.bundles.pools, "bundle-pools", nil, "`names` of the pools of nodes, each with a bundle of its own in the ConfigMap pipeguard-bundle-POOL (default default)")
	f.DurationVar(&o.cluster.bundles.life, "bundle-life", 0, "how long nodes may decide by a bundle without hearing of another, 10m to 2160h; it is renewed at half of it (default 168h)")
	f.Uint64Var(&o.cluster.bundles.minimum, "bundle-minimum-revision", 0, "oldest `revision` that a node may still take once it has a bundle of now")
	f.StringVar(&o.cluster.bundles.namespace, "bundle-namespace", "", "`namespace` of the ConfigMaps: that of the pods that mount them (default --pod-namespace)")
	f.BoolVar(&o.cluster.bundles.serve, "bundle-serve", true, "serve bundles at /bundles/POOL to whoever asks (with --client-ca-file: who has a certificate); false leaves nodes the ConfigMaps alone")
	f.StringVar(&o.cluster.bundles.modules, "bundle-modules", "", "`directory` of Rego that judges calls on nodes beside what is built into them, with its tests; read again when it changes")
	f.BoolVar(&o.cluster.witness.on, "witness", false, "cosign checkpoints of the nodes' audit logs at /witness, for whoever asks (with --client-ca-file: who has a certificate)")
	f.StringVar(&o.cluster.witness.key, "witness-key", "", "`file` of the private key that cosigns, as \"pipeguard audit keys generate\" makes it and read again when it changes")
	f.StringVar(&o.cluster.witness.nodeKeys, "witness-node-keys", "", "`file` with verifier keys of the nodes' logs, one a line, read again when it changes")
	f.BoolVar(&o.cluster.witness.trustFirstUse, "witness-trust-first-use", false, "pin the key that a node names in its GuardedNode with the first checkpoint that it has signed, where --witness-node-keys has none")
	f.StringVar(&o.policyDir, "policy-dir", "", "`directory` of Rego policies and their tests, read again when it changes (default: the built-in policy)")
	f.StringVar(&o.params, "params", "", "YAML `file` of parameters, read again when it changes (default: guard csi-proxy*, allow no namespace)")
	f.StringVar(&o.namespaces, "namespaces", "", "YAML `file` with labels of namespaces: Namespace objects, or a mapping of names to labels")
	f.StringVar(&o.listenAddress, "listen-address", ":9443", "`address` for AdmissionReviews; port 0 takes a free one")
	f.StringVar(&o.certDir, "cert-dir", "", "`directory` with tls.crt and tls.key, read again when they change")
	f.StringVar(&o.certFile, "tls-cert-file", "", "certificate `file`, with --tls-private-key-file instead of --cert-dir")
	f.StringVar(&o.keyFile, "tls-private-key-file", "", "`file` of the certificate's private key")
	f.StringSliceVar(&o.certHosts, "cert-hosts", nil, "`names` and addresses in the certificate that is made if no files are given (default localhost, 127.0.0.1, ::1; in a cluster the Service's names, and these)")
	f.StringVar(&o.writeCA, "write-ca", "", "write the authority of the certificate that is made to this `file`")
	f.StringVar(&o.clientCAFile, "client-ca-file", "", "require client certificates of the authorities in this `file`, so that only the API server is answered")
	f.StringVar(&o.metricsAddress, "metrics-bind-address", ":8080", "`address` for /metrics; 0 turns it off")
	f.StringVar(&o.healthAddress, "health-probe-bind-address", ":8081", "`address` for /healthz and /readyz; 0 turns it off")
	f.StringVar(&o.auditLog, "audit-log", "-", "`directory` for a record of each decision, - for standard output")
	f.BoolVar(&o.auditRequired, "audit-required", false, "refuse a pod whose record cannot be written")
	f.StringVar(&level, "log-level", "info", "least `level` of diagnostics on standard error: debug, info, warn, error")
	return cmd
}

// check reports everything that is wrong with the command line at once.
func (o *options) check(level string) error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if o.standalone {
		o.checkStandalone(fault)
	} else {
		o.checkCluster(fault)
	}
	for _, a := range []struct{ flag, value string }{
		{"listen-address", o.listenAddress}, {"metrics-bind-address", o.metricsAddress}, {"health-probe-bind-address", o.healthAddress},
	} {
		if a.flag != "listen-address" && a.value == "0" {
			continue
		}
		if _, port, err := net.SplitHostPort(a.value); err != nil {
			fault("--%s %q: want host:port or :port", a.flag, a.value)
		} else if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			fault("--%s %q: the port is not a number from 0 to 65535", a.flag, a.value)
		}
	}
	if (o.certFile == "") != (o.keyFile == "") {
		fault("--tls-cert-file and --tls-private-key-file go together")
	}
	if o.certDir != "" && (o.certFile != "" || o.keyFile != "") {
		fault("--cert-dir and --tls-cert-file exclude each other")
	}
	if o.writeCA != "" && !o.makesCertificate() {
		fault("--write-ca is for the certificate that is made if no files are given")
	}
	if o.auditLog == "" {
		fault("--audit-log is empty; - is standard output")
	}
	if err := o.logLevel.UnmarshalText([]byte(level)); err != nil || o.logLevel > zapcore.ErrorLevel || o.logLevel < zapcore.DebugLevel {
		fault("--log-level %q: want debug, info, warn or error", level)
	}
	return errors.Join(faults...)
}

func (o *options) checkStandalone(fault func(string, ...any)) {
	if o.cluster.kubeconfig != "" {
		fault("--kubeconfig is for a webhook in a cluster, not for --standalone")
	}
	if o.cluster.bundles.key != "" {
		fault("--bundle-key is for a webhook in a cluster, not for --standalone")
	}
	if o.cluster.witness != (witnessOptions{}) {
		fault("--witness is for a webhook in a cluster, not for --standalone")
	}
	if o.certHosts == nil {
		o.certHosts = []string{"localhost", "127.0.0.1", "::1"}
	}
	if len(o.certHosts) == 0 {
		fault("--cert-hosts is empty")
	}
}

func (o *options) checkCluster(fault func(string, ...any)) {
	c := &o.cluster
	for _, f := range []struct{ flag, value, why string }{
		{"pod-namespace", c.podNamespace, "or set POD_NAMESPACE; without a cluster, use --standalone"},
		{"pod-name", c.podName, "or set POD_NAME"},
		{"service-name", c.serviceName, "the certificate is for it"},
		{"cert-secret", c.certSecret, "the certificate is kept in it"},
		{"webhook-config", c.webhookConfig, "its caBundle must fit the certificate"},
		{"policy-webhook-config", c.policyWebhookConfig, "its caBundle must fit the certificate"},
	} {
		if f.value == "" {
			fault("--%s is empty: %s", f.flag, f.why)
		}
	}
	c.bundles.check(c.podNamespace, fault)
	c.witness.check(fault)
	if c.scanInterval < time.Minute {
		fault("--scan-interval %s is below a minute", c.scanInterval)
	}
	if o.namespaces != "" {
		fault("--namespaces is for --standalone: in a cluster the labels are the cluster's")
	}
	if o.writeCA != "" {
		fault("--write-ca is for --standalone")
	}
}

// makesCertificate says whether the process makes its own certificate.
func (o *options) makesCertificate() bool { return o.certDir == "" && o.certFile == "" }
