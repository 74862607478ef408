package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap/zapcore"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/pipeguard/pipeguard/internal/configfile"
	"github.com/pipeguard/pipeguard/internal/version"
)

// options are the command line and the file that it names.
type options struct {
	configuration

	standalone   bool
	kubeconfig   string
	podNamespace string // of this pod and of all that it writes for itself
	podName      string // by which replicas are told apart
	namespaces   string
	writeCA      string
	level        zapcore.Level
}

// fields are those of the file that flags override, by flag.
var fields = map[string]string{
	"listen-address":            "listenAddress",
	"metrics-bind-address":      "metricsBindAddress",
	"health-probe-bind-address": "healthProbeBindAddress",
	"policy-dir":                "policyDir",
	"params":                    "params",
	"cert-dir":                  "certificate.dir",
	"audit-log":                 "audit.log",
	"log-level":                 "logLevel",
}

const help = `webhook answers AdmissionReviews (admission.k8s.io/v1) over HTTPS at /validate. It judges pods, the templates of
workloads and PersistentVolumes on CREATE and UPDATE and refuses those that would give a container a guarded Windows pipe
that it may not have.

In a cluster it also follows PipePolicy and PolicyModule objects (pipeguard.dev/v1alpha1), judges them at
/validate-policies, writes their status, makes and rotates its certificate, and reports what exists already. One replica,
the leader, does the writing; all of them answer. The chart sets what it needs.

A file has all settings (--config; kind WebhookConfig, described in the operator's guide); flags override it.

With bundles.key in the file, the leader also signs the active PipePolicies for the nodes, one bundle for each pool, and keeps
them in ConfigMaps; every replica serves them at /bundles/POOL beside /validate. With witness.key it cosigns checkpoints of the nodes'
audit logs at /witness (C2SP tlog-witness), each only if it contains the checkpoint that was cosigned before, so that a log that was rolled back is
found. If one of these keys cannot be read, only what it signs is missing: reviews are answered.

With --standalone it needs no cluster: policies come from the program itself or from --policy-dir, labels of namespaces
from --namespaces, and, unless files are given, it makes a certificate of its own (--write-ca lets clients verify it).

Policies, parameters and certificates are read again when their files change. What does not compile, does not pass its
own tests or lets a known breach through is reported and not used; what was active before goes on deciding.

Beside /validate it serves /healthz and /readyz (--health-probe-bind-address) and /metrics (--metrics-bind-address),
both without TLS. Ready means that a policy is active, that reviews which must be refused were refused just now and, in a
cluster, that the API server can verify the certificate by the webhook configuration as it stands.

Exit codes: 0 stopped as asked (SIGTERM, SIGINT), 1 could not start or failed, 2 wrong command line or configuration.`

const example = `  # Try it: judge pods on this machine, and trust the certificate it makes
  webhook --standalone --listen-address 127.0.0.1:9443 --write-ca ca.pem
  curl --cacert ca.pem -H 'Content-Type: application/json' --data @review.json https://127.0.0.1:9443/validate

  # Own policies, parameters and certificate
  webhook --standalone --policy-dir policies --params parameters.yaml --cert-dir /etc/webhook/certs

  # In a cluster, with POD_NAMESPACE and POD_NAME in the environment
  webhook --config /etc/pipeguard/config/webhook.yaml`

func newCommand(serve func(options) error) *cobra.Command {
	o := options{configuration: defaultConfiguration(), podNamespace: os.Getenv("POD_NAMESPACE"), podName: os.Getenv("POD_NAME")}
	var config string
	var showsVersion bool
	cmd := &cobra.Command{
		Use:           "webhook [flags]",
		Short:         "Refuse objects that would give a pod a guarded Windows pipe it may not have",
		Long:          help,
		Example:       example,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if showsVersion { // by a flag of our own: a template in place of cobra's own text makes the linker keep every exported method
				_, err := fmt.Fprintln(cmd.OutOrStdout(), version.String("webhook"))
				return err
			}
			if err := o.complete(config, cmd); err != nil {
				return errors.Join(err, errors.New("run 'webhook --help' for usage"))
			}
			return serve(o)
		},
	}
	cmd.AddCommand(newProbe())
	cmd.CompletionOptions.DisableDefaultCmd = true
	f := cmd.Flags()
	f.SortFlags = false
	add := func(value *string, name, usage string) { f.Var((*text)(value), name, usage) }
	add(&config, "config", "YAML `file` of kind WebhookConfig with all settings (default: the defaults and these flags)")
	f.BoolVar(&o.standalone, "standalone", false, "run without a cluster")
	add(&o.kubeconfig, "kubeconfig", "`file` to reach the cluster with (default: that of the pod, else $KUBECONFIG)")
	add(&o.namespaces, "namespaces", "YAML `file` with labels of namespaces, for --standalone: Namespace objects, or a mapping of names to labels")
	add(&o.writeCA, "write-ca", "with --standalone, write the authority of the certificate that is made to this `file`")
	add(&o.ListenAddress, "listen-address", "`address` for AdmissionReviews; port 0 takes a free one")
	add(&o.MetricsBindAddress, "metrics-bind-address", "`address` for /metrics; 0 turns it off")
	add(&o.HealthProbeBindAddress, "health-probe-bind-address", "`address` for /healthz and /readyz; 0 turns it off")
	add(&o.PolicyDir, "policy-dir", "`directory` of Rego policies and their tests, read again when it changes (default: the built-in policy)")
	add(&o.Params, "params", "YAML `file` of parameters, read again when it changes (default: guard csi-proxy*, allow no namespace)")
	add(&o.Certificate.Dir, "cert-dir", "`directory` with tls.crt and tls.key, read again when they change (default: make a certificate)")
	add(&o.Audit.Log, "audit-log", "`directory` for a record of each decision, - for standard output")
	add(&o.LogLevel, "log-level", "minimum log `level` on standard error: debug, info, warn, error")
	f.BoolVarP(&showsVersion, "version", "v", false, "print the version")
	return cmd
}

// text is the value of a flag that is not blank, nor has a blank at an end: a variable that is not set would override the file with nothing.
type text string

func (t *text) String() string { return string(*t) }

func (*text) Type() string { return "string" }

func (t *text) Set(value string) error {
	if strings.TrimSpace(value) == "" {
		return errors.New("it is empty: give it a value, or leave the flag out")
	}
	if strings.TrimSpace(value) != value {
		return errors.New("it begins or ends with a blank: remove it")
	}
	*t = text(value)
	return nil
}

// complete reads the file, lets the flags of the command override it, and reports everything that is wrong at once.
func (o *options) complete(config string, cmd *cobra.Command) error {
	named := map[string]string{} // flags that were given, by field
	given := map[string]string{} // and their values
	for flag, field := range fields {
		if f := cmd.Flags().Lookup(flag); f.Changed {
			named[field], given[flag] = "--"+flag, f.Value.String()
		}
	}
	var file configfile.File
	if config != "" {
		var err error
		if file, err = o.read(config); err != nil {
			return err
		}
	}
	for flag, value := range given {
		if err := cmd.Flags().Set(flag, value); err != nil {
			return err
		}
	}
	var faults []error
	o.check(func(field, format string, args ...any) {
		problem := fmt.Sprintf(format, args...)
		switch flag, ok := named[field]; {
		case ok:
			faults = append(faults, errors.New(flag+" "+problem))
		case file.Has(field):
			faults = append(faults, errors.New(file.Line(configfile.Fault{Field: field, Problem: problem})))
		default:
			faults = append(faults, errors.New(field+" "+problem))
		}
	})
	return errors.Join(faults...)
}

// report takes a problem of a field of the file, or of a flag or variable that is no field.
type report func(field, format string, args ...any)

func (o *options) check(fault report) {
	if o.standalone {
		o.checkStandalone(fault)
	} else {
		o.checkCluster(fault)
	}
	for _, a := range []struct{ field, value string }{
		{"listenAddress", o.ListenAddress}, {"metricsBindAddress", o.MetricsBindAddress}, {"healthProbeBindAddress", o.HealthProbeBindAddress},
	} {
		if a.field != "listenAddress" && a.value == "0" {
			continue
		}
		if _, port, err := net.SplitHostPort(a.value); err != nil {
			fault(a.field, "%q: want host:port or :port", a.value)
		} else if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			fault(a.field, "%q: the port is not a number from 0 to 65535", a.value)
		}
	}
	c := &o.Certificate
	if (c.CertFile == "") != (c.KeyFile == "") {
		fault("certificate", "certFile and keyFile go together")
	}
	if c.Dir != "" && (c.CertFile != "" || c.KeyFile != "") {
		fault("certificate", "dir and certFile exclude each other")
	}
	if o.writeCA != "" && !c.isMade() {
		fault("--write-ca", "is for the certificate that is made if no files are given")
	}
	if err := o.level.UnmarshalText([]byte(o.LogLevel)); err != nil || o.level > zapcore.ErrorLevel || o.level < zapcore.DebugLevel {
		fault("logLevel", "%q: want debug, info, warn or error", o.LogLevel)
	}
}

func (o *options) checkStandalone(fault report) {
	usual := defaultConfiguration()
	for _, of := range []struct {
		field string
		isSet bool
	}{
		{"--kubeconfig", o.kubeconfig != ""},
		{"cluster", o.Cluster != usual.Cluster},
		{"bundles", !reflect.DeepEqual(o.Bundles, usual.Bundles)},
		{"witness", o.Witness != usual.Witness},
		{"floor", o.Floor != usual.Floor},
		{"reports", o.Reports != usual.Reports},
	} {
		if of.isSet {
			fault(of.field, "is for a webhook in a cluster, not for --standalone")
		}
	}
	if o.Certificate.Hosts == nil {
		o.Certificate.Hosts = []string{"localhost", "127.0.0.1", "::1"}
	}
	if len(o.Certificate.Hosts) == 0 {
		fault("certificate.hosts", "is empty")
	}
}

func (o *options) checkCluster(fault report) {
	for _, f := range []struct{ field, value, why string }{
		{"POD_NAMESPACE", o.podNamespace, "set it to the namespace of this pod; without a cluster, use --standalone"},
		{"POD_NAME", o.podName, "set it to the name of this pod"},
	} {
		if f.value == "" {
			fault(f.field, "is empty: %s", f.why)
		}
	}
	o.Bundles.check(o.podNamespace, fault)
	o.Witness.check(fault)
	o.Floor.check(fault)
	o.Reports.check(fault)
	if o.Cluster.ScanInterval < time.Minute {
		fault("cluster.scanInterval", "%s is below a minute", o.Cluster.ScanInterval)
	}
	if namespace := o.Cluster.CanaryNamespace; namespace != noCanary && len(validation.IsDNS1123Label(namespace)) > 0 {
		fault("cluster.canaryNamespace", "%q is neither the name of a namespace nor %s", namespace, noCanary)
	}
	if o.namespaces != "" {
		fault("--namespaces", "is for --standalone: in a cluster the labels are the cluster's")
	}
	if o.writeCA != "" {
		fault("--write-ca", "is for --standalone")
	}
}

// isMade says whether the process makes the certificate itself.
func (c certificateOptions) isMade() bool { return c.Dir == "" && c.CertFile == "" }
