// Package schema generates the reference of audit records, a page and a JSON Schema, from their Go types.
// It trusts the comments and tags of package audit alone, so that there is one place that says what a field means.
package schema
