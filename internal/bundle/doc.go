// Package bundle carries policies to nodes: signed archives that a node verifies, tests and stores.
// It trusts the public keys that it is given, and nothing that an archive says before one of them has signed for it.
package bundle
