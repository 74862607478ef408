// Package report tells in one HTML page what an audit log says, for people who have nothing but the log.
// It trusts no text of a record, and the page needs no script and no network.
package report
