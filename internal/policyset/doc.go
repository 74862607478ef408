// Package policyset assembles the base policy, its parameters and the policy objects of a cluster into one set.
// It trusts no object, not even a stored one: each is checked again, and one invalid object rejects the whole set.
package policyset
