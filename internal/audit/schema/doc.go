// Package schema writes the reference of audit records, a page and a JSON Schema, from the Go types that records are made of.
// It trusts the comments and tags of package audit alone, so that there is one place that says what a field means.
package schema
