// Package handler carries out the operations of the newest API versions on a host.
// It trusts no request: paths and identifiers are parsed into types of their own before a host sees them.
package handler
