// Package report renders an audit log as one self-contained HTML page.
// It trusts no text of a record, and the page needs no script and no network.
package report
