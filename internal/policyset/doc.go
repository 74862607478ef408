// Package policyset puts together what decides: the base policy, its parameters, and the policy objects of a cluster.
// It trusts no object, also none that is stored: each is checked again, and one that is unfit stops the whole set.
package policyset
