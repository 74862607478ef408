// Package peer names the process at the other end of a pipe.
// It trusts the kernel's PID only while it holds a handle to that process.
//
// The program is the one that runs when the connection is accepted, and it tells programs of different accounts apart, not
// those of one account: whoever may act on a process of the same account can make it speak. On Linux it is enough to
// connect and to become another program (execve) before the accept; later than that it is noticed. There the directory
// of the sockets, which lets in one user, is the boundary.
package peer
