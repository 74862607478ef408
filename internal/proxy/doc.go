// Package proxy serves the CSI Proxy APIs on their pipes, each call behind an access list and an audit record.
// It trusts the kernel about who is calling, and nothing that arrives on a connection.
package proxy
