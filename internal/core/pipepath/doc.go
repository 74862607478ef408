// Package pipepath decides which Windows pipe a path names, whatever its spelling.
// It is string work alone and gives the same answer on every OS; it trusts nothing but its input,
// and takes a path that it cannot prove harmless for a match.
package pipepath
