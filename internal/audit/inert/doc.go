// Package inert writes text that others chose so that it acts on nothing that shows it.
// It trusts no string of a record: names, paths and errors may hold control, bidirectional or formula characters.
package inert
