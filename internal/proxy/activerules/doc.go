// Package activerules selects the rules that decide about a call: those of the signed bundle for pipes that the cluster guards, and the node's own for all
// others. It trusts the node's configuration and the signature of a bundle; without a valid bundle every call is denied.
package activerules
