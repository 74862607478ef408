// Package compile puts PipePolicies into the words of nodes, so that the objects that decide at admission decide there too.
// It trusts no object: each is checked again, and one that is unfit stops the whole set.
package compile
