// Package report publishes the state of a node's proxy to the cluster in the node's GuardedNode.
// It trusts the service's address on the node, and an API server whose certificate its authority has signed.
package report
