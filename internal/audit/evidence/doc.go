// Package evidence makes an audit log tamper-evident: a Merkle tree over its lines, signed checkpoints of the tree, witnesses.
// It trusts no line of a log and no checkpoint beyond the verifier keys it is given; the holder of the private key can write another log.
package evidence
