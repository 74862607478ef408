// Package token reads the service-account token that a caller sends with its calls, and ties it to the caller's process.
// It trusts the cluster's published keys or its API server for who a token was made for, and what the kernel says of the
// caller for who may use it: a token that is valid but was made for another pod, or for a pod of another node, is refused.
//
// A token adds to what is known of a caller and replaces nothing of it. No error and no result holds any part of a token.
package token
