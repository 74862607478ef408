// Package audit holds a second verifier of audit logs, and the test that it and the first one agree.
// It trusts neither.
package audit
