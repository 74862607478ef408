package pipe

// DefaultSDDL is the security descriptor of a pipe. Owner and group are SYSTEM, which is the account of the
// service: another account may not give an object to SYSTEM, so a run by hand needs a descriptor of its own.
//
//	D:P                 the list is protected: nothing is inherited that would widen it
//	(D;;FA;;;NU)        denies accounts that logged on over the network; first, because a denial after a grant is never reached
//	(D;;FA;;;AN)        denies anonymous logons
//	(A;;FA;;;SY)        SYSTEM serves the pipe, and the agents of the node that run as SYSTEM look at it
//	(A;;0x12019b;;;BA)  administrators may read and write, but not FILE_CREATE_PIPE_INSTANCE (0x4):
//	                    an account that may create an instance can answer our callers. The pipe file system does not ask
//	                    a client for that right, so GENERIC_WRITE opens the pipe without it.
//	(A;;RC;;;OW)        being the owner gives the right to read the descriptor and not the right to rewrite it
//
// The strings are those of https://learn.microsoft.com/windows/win32/secauthz/security-descriptor-string-format,
// the rights those of https://learn.microsoft.com/windows/win32/ipc/named-pipe-security-and-access-rights.
const DefaultSDDL = `O:SYG:SYD:P(D;;FA;;;NU)(D;;FA;;;AN)(A;;FA;;;SY)(A;;0x12019b;;;BA)(A;;RC;;;OW)`
