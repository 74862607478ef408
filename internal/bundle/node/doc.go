// Package node makes what decides on a node of a bundle: its access list and its policies in Rego.
// It trusts a bundle's signature, and lets nothing decide that has not refused a stranger first.
package node
