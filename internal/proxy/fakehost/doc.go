// Package fakehost is a host in memory: directories, links, disks, volumes, shares, iSCSI targets and services
// that behave like a node's.
// It trusts its caller as a real host does: paths and identifiers are of types that were checked before.
package fakehost
