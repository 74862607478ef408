// Package rulebook says which rules decide about a call: the cluster's, which come in signed bundles, or the node's own. It
// trusts the node's configuration and the signature of a bundle, and denies where it does not know.
package rulebook
