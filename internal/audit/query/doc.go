// Package query reads audit logs: files, directories of segments and streams, one record in memory at a time.
// It trusts nothing that it reads, and changes nothing.
package query
