// Package peer names the process at the other end of a pipe.
// It trusts the kernel's PID only while it holds a handle to that process.
package peer
