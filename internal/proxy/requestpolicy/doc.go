// Package requestpolicy asks a policy in Rego about each call that the access list has allowed.
// It trusts the peer that it is given and nothing that the caller sent; a call that it cannot show whole to the
// policy, and a policy that does not answer, are denials with codes of their own.
package requestpolicy
