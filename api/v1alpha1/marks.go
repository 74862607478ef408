package v1alpha1

import "time"

// Labels and annotations by which Pipeguard's own objects of other kinds are known.
const (
	// LabelReplica is "true" on the Lease of a replica of the webhook.
	LabelReplica = "pipeguard.dev/replica"
	// AnnotationRevision of such a Lease is the revision of the policies by which the replica decides.
	AnnotationRevision = "pipeguard.dev/revision"
	// AnnotationFailed of such a Lease is not empty if the replica's newest policies could not be activated.
	AnnotationFailed = "pipeguard.dev/failed"
	// LabelNodePool of a ConfigMap names the node pool whose bundle it holds.
	LabelNodePool = "pipeguard.dev/node-pool"
	// AnnotationBundleRevision of such a ConfigMap is the number of the bundle, in decimal.
	AnnotationBundleRevision = "pipeguard.dev/bundle-revision"
	// LabelServesPipes is "true" on each Node that has a label with LabelPipePrefix, so that such Nodes can be listed.
	LabelServesPipes = "pipeguard.dev/serves-pipes"
	// LabelPipePrefix is before the name of a pipe in the label that a Node has while its proxy serves the pipe; its value is LabelPipeServed.
	LabelPipePrefix = "pipe.pipeguard.dev/"
	// LabelPipeServed is the value of such a label.
	LabelPipeServed = "served"
)

const (
	// ReplicaLiveFor is how long a replica of the webhook counts after it renewed its Lease: it may miss two of three renewals.
	ReplicaLiveFor = 90 * time.Second
	// NodeSilentAfter is how long after its last report a node counts as silent: it reports every five minutes, and may miss two.
	NodeSilentAfter = 15 * time.Minute
)
