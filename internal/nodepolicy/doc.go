// Package nodepolicy builds the policies that a node enforces from a bundle: the access list of its PipePolicies, and the request policy with the Rego
// that was added to the built-in one. It trusts the signature of a bundle and nothing in it: a policy set must pass its own tests and refuse strangers
// before it is returned. Servers are not its concern, so that the command line and the webhook can try a policy set too.
package nodepolicy
