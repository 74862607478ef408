// Package peer finds out which process opened a connection, as which account, running which program and, where it is given
// a source, in which container of which pod. It believes a process id for as long as it has that process open, and no longer.
//
// The program is the one that runs when the connection is accepted, and it tells programs of different accounts apart, not
// those of one account: a process that may act on another of the same account can make it call. On Linux it is enough to
// connect and to become another program (execve) before the accept; later than that it is noticed. There the directory
// of the sockets, which lets in one user, is the boundary.
//
// The container is the one whose job holds the process, by the kernel's word. Every process of a container has that
// container's identity. A container of the host's own processes that runs as the system can leave its job, and is then a
// process of the host.
package peer
