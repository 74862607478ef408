package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/pipeguard/pipeguard/internal/configfile"
	"github.com/pipeguard/pipeguard/internal/controller/keepfloor"
	"github.com/pipeguard/pipeguard/internal/controller/scan"
)

// configKind is the kind of the file that configuration describes.
const configKind = "WebhookConfig"

// configuration is the file of --config. It is read once, at the start.
type configuration struct {
	// APIVersion is pipeguard.dev/v1alpha1.
	APIVersion string `yaml:"apiVersion"`
	// Kind is WebhookConfig.
	Kind string `yaml:"kind"`
	// ListenAddress is the address for AdmissionReviews, :9443 if not set. Port 0 takes a free one.
	ListenAddress string `yaml:"listenAddress"`
	// MetricsBindAddress is the address for /metrics, :8080 if not set; 0 turns it off.
	MetricsBindAddress string `yaml:"metricsBindAddress"`
	// HealthProbeBindAddress is the address for /healthz and /readyz, :8081 if not set; 0 turns it off.
	HealthProbeBindAddress string `yaml:"healthProbeBindAddress"`
	// PolicyDir is a directory of Rego policies and their tests, read again when it changes; the built-in policy if not set.
	PolicyDir string `yaml:"policyDir"`
	// Params is a YAML file of parameters, read again when it changes; if not set, csi-proxy* is guarded and no namespace allowed.
	Params string `yaml:"params"`
	// Certificate is the server's.
	Certificate certificateOptions `yaml:"certificate"`
	// Audit says where the record of each decision goes.
	Audit auditOptions `yaml:"audit"`
	// LogLevel is the minimum log level on standard error: debug, info (if not set), warn or error.
	LogLevel string `yaml:"logLevel"`
	// Cluster names the objects of the cluster that belong to the webhook.
	Cluster clusterOptions `yaml:"cluster"`
	// Floor has the API server refuse by policies of its own what the webhook refuses.
	Floor floorOptions `yaml:"floor"`
	// Reports are those of the scan that other projects' tools read.
	Reports reportOptions `yaml:"reports"`
	// Bundles has PipePolicies signed for nodes.
	Bundles bundleOptions `yaml:"bundles"`
	// Witness has checkpoints of the nodes' audit logs cosigned.
	Witness witnessOptions `yaml:"witness"`
}

// certificateOptions say where the certificate comes from: a directory, two files or, without either, the process itself.
type certificateOptions struct {
	// Dir is a directory with tls.crt and tls.key, read again when they change.
	Dir string `yaml:"dir"`
	// CertFile is a certificate file, and KeyFile its private key, in place of Dir.
	CertFile string `yaml:"certFile"`
	KeyFile  string `yaml:"keyFile"`
	// Secret is the name of the Secret that keeps a certificate that the webhook makes, and its authority; pipeguard-webhook-cert if not set.
	Secret string `yaml:"secret"`
	// Hosts are names and addresses in a certificate that the webhook makes: in a cluster beside the Service's names, and without one
	// localhost, 127.0.0.1 and ::1 if not set.
	Hosts []string `yaml:"hosts"`
	// ClientCAFile has the authorities of client certificates, which are required if it is set, so that only the API server is answered.
	ClientCAFile string `yaml:"clientCAFile"`
}

// auditOptions say where records go.
type auditOptions struct {
	// Log is a directory of segments, from which nothing is ever removed; "-", if not set, is standard output.
	Log string `yaml:"log"`
	// Required refuses an object whose record cannot be written.
	Required bool `yaml:"required"`
}

// clusterOptions name objects of the cluster.
type clusterOptions struct {
	// ServiceName is the Service that the API server calls, pipeguard-webhook if not set.
	ServiceName string `yaml:"serviceName"`
	// WebhookConfig is the ValidatingWebhookConfiguration for objects, pipeguard-webhook if not set.
	WebhookConfig string `yaml:"webhookConfig"`
	// PolicyWebhookConfig is the ValidatingWebhookConfiguration for policy objects, pipeguard-policies if not set.
	PolicyWebhookConfig string `yaml:"policyWebhookConfig"`
	// CanaryNamespace is the namespace in which the API server is asked, by the dry run of a PodTemplate, whether it sends objects to
	// the webhook, kube-system if not set; "-" does not ask.
	CanaryNamespace string `yaml:"canaryNamespace"`
	// ScanInterval is the time between two scans of existing objects, 10m if not set; each new policy starts one as well.
	ScanInterval time.Duration `yaml:"scanInterval"`
	// LabelNodes has the leader say in labels of each Node which pipes its proxy serves; it needs the right to list and patch Nodes.
	LabelNodes bool `yaml:"labelNodes"`
	// LeaderElect false has every replica write, in place of one leader.
	LeaderElect bool `yaml:"leaderElect"`
}

// isPathSegment says that a name can stand in an address of the API, which is all that is asked of those of roles.
func isPathSegment(name string) bool {
	return name != "." && name != ".." && !strings.ContainsAny(name, "/%")
}

// floorOptions are about the floor: ValidatingAdmissionPolicies made of the parameters and PipePolicies.
type floorOptions struct {
	// Mode is Off (if not set), Always for a floor beside the webhook, or Only for a cluster without cluster.webhookConfig, where no object is sent to the webhook.
	Mode keepfloor.Mode `yaml:"mode"`
	// Name is that of its objects about pods, pipeguard-floor if not set; those about PersistentVolumes have "-volumes" behind it.
	Name string `yaml:"name"`
	// ClusterRole is the process's own, pipeguard-webhook if not set. The objects belong to it, and the cluster removes them with it.
	ClusterRole string `yaml:"clusterRole"`
}

// reportOptions are about reports in a kind that other projects define, beside PipeReports.
type reportOptions struct {
	// Standard is the kind: None (if not set), PolicyReport for wgpolicyk8s.io/v1alpha2, or OpenReports for openreports.io/v1alpha1. A
	// cluster without the kind has no such reports until it has it.
	Standard scan.Standard `yaml:"standard"`
	// ClusterRole is the ClusterRole that permits to write them. They belong to it, and the cluster removes them with it; if not set,
	// they stay when they are no longer written.
	ClusterRole string `yaml:"clusterRole"`
}

// check reports what is wrong with the options.
func (o *reportOptions) check(fault report) {
	if err := o.Standard.Check(); err != nil {
		fault("reports.standard", "%v", err)
	}
	if o.ClusterRole == "" {
		return
	}
	if o.Standard == scan.NoStandard {
		fault("reports.clusterRole", "is for reports of a standard kind, and reports.standard is None")
	}
	if !isPathSegment(o.ClusterRole) {
		fault("reports.clusterRole", "%q is no name of a ClusterRole", o.ClusterRole)
	}
}

// bundleOptions are about bundles. Without Key there are none.
type bundleOptions struct {
	// Key is the file of a private key, as "pipeguard keys generate" makes it, read again when it changes.
	Key string `yaml:"key"`
	// Pools are the names of the pools of nodes, each with a bundle of its own in the ConfigMap pipeguard-bundle-POOL; default if not set.
	Pools []string `yaml:"pools"`
	// Life is how long nodes may decide by a bundle without hearing of another, 10m to 2160h, 168h if not set. A bundle is renewed at half of it.
	Life time.Duration `yaml:"life"`
	// MinimumRevision is the oldest revision that a node with a current bundle may still take.
	MinimumRevision uint64 `yaml:"minimumRevision"`
	// Namespace is that of the ConfigMaps, and so of the pods that mount them; the webhook's own if not set.
	Namespace string `yaml:"namespace"`
	// Serve false leaves nodes the ConfigMaps alone: otherwise bundles are served at /bundles/POOL to every client (with
	// certificate.clientCAFile, to clients with a certificate).
	Serve bool `yaml:"serve"`
	// Modules is a directory of Rego that judges calls on nodes beside what is built into them, with its tests, read again when it changes.
	Modules string `yaml:"modules"`
}

// witnessOptions are about the witness. Without Key there is none. It answers every client (with certificate.clientCAFile, clients
// with a certificate).
type witnessOptions struct {
	// Key is the file of the private key that cosigns, as "pipeguard keys generate" makes it, read again when it changes.
	Key string `yaml:"key"`
	// NodeKeys is a file with verifier keys of the nodes' logs, one a line, read again when it changes.
	NodeKeys string `yaml:"nodeKeys"`
	// TrustFirstUse pins the key that a node names in its GuardedNode with the first checkpoint that it has signed, where NodeKeys has none.
	TrustFirstUse bool `yaml:"trustFirstUse"`
}

// defaultConfiguration has what the docstrings say, but for the identity of a file, and for what depends on other fields.
func defaultConfiguration() configuration {
	return configuration{
		ListenAddress: ":9443", MetricsBindAddress: ":8080", HealthProbeBindAddress: ":8081",
		Certificate: certificateOptions{Secret: "pipeguard-webhook-cert"}, // #nosec G101 -- the name of an object
		Audit:       auditOptions{Log: "-"},
		LogLevel:    "info",
		Cluster: clusterOptions{
			ServiceName: "pipeguard-webhook", WebhookConfig: "pipeguard-webhook", PolicyWebhookConfig: "pipeguard-policies",
			CanaryNamespace: "kube-system", ScanInterval: 10 * time.Minute, LeaderElect: true,
		},
		Floor:   floorOptions{Mode: keepfloor.Off, Name: "pipeguard-floor", ClusterRole: "pipeguard-webhook"},
		Reports: reportOptions{Standard: scan.NoStandard},
		Bundles: bundleOptions{Serve: true},
	}
}

// read replaces the defaults by the values of a file.
func (c *configuration) read(name string) (configfile.File, error) {
	text, err := configfile.Read(name)
	if err != nil {
		return configfile.File{}, fmt.Errorf("read configuration: %w", err)
	}
	file, err := configfile.Decode(name, configKind, text, c)
	if err != nil {
		return configfile.File{}, err
	}
	return file, file.CheckText(*c, nil)
}
