// Package acl is the access list of a node's own file: its form, its faults and warnings, and the limits of callers.
// What a rule permits is decided by package access; a file that this package does not understand to the last entry permits nothing.
package acl
