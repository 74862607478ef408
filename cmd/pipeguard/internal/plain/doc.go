// Package plain prints text that others chose so that it cannot act on a terminal.
// It trusts no string: names, paths, messages and errors may hold control or bidirectional characters.
package plain
