// Package kill holds the test that kills the proxy, and judges its audit log by what the host itself wrote down.
// It trusts the kernel to keep what was written to a file when the process that wrote it is gone.
package kill
