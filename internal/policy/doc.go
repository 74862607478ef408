// Package policy compiles, tests and evaluates Rego policies with OPA.
// It trusts no module: each compiles against a list of allowed builtins and must pass its own tests before it decides.
package policy
