// Package order serializes operations on the same object of the host and runs all others concurrently.
// It trusts its callers to leave what they have entered; those who do not keep their place and are counted.
package order
