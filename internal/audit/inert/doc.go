// Package inert escapes untrusted text so that it cannot act on the terminal or page that shows it.
// It trusts no string of a record: names, paths and errors may hold control, bidirectional or formula characters.
package inert
