// Package witnesstest is a node's audit log for tests of a witness: written and signed as nodes do, rolled back and forked as intruders do.
// It trusts its caller: it stops the test on every error.
package witnesstest
