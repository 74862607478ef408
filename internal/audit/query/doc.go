// Package query reads audit logs: files, directories of segments and streams, a bounded number of records in memory at a time.
// It trusts nothing that it reads, and changes nothing.
package query
