// Package report tells the cluster what a node decides by: it keeps the node's GuardedNode on what its service answers.
// It trusts the service's address on the node, and an API server whose certificate its authority has signed.
package report
