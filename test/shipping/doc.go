// Package shipping runs a log shipper over a log that is being written, and counts what arrives.
package shipping
