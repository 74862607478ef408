// Package hunt matches audit records against detection rules. Rules are a strict subset of Sigma, https://sigmahq.io/sigma-specification.
// It trusts rules as it trusts code, and records not at all: no record changes what a rule means.
package hunt
