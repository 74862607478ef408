// Package audit records who asked for what, what was decided and how it ended.
// It trusts no text that it records: names, paths and errors may be an attacker's.
package audit
