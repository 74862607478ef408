// Package apiserver finds the objects that an API server refuses before it asks a webhook about them.
// It trusts the Go types of Kubernetes for the fields there are, and knows only the rules that concern paths of the host.
package apiserver
