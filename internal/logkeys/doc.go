// Package logkeys names the fields of diagnostic log lines.
// Every key is declared once, so that a search for a key finds every line that carries it.
package logkeys

// Keys of diagnostic log fields.
const (
	Address    = "address"
	AuditID    = "auditID"
	Caller     = "caller"
	Code       = "code"
	Config     = "config"
	Connection = "connection"
	Decision   = "decision"
	Directory  = "directory"
	Flag       = "flag"
	Group      = "group"
	Method     = "method"
	Mode       = "mode"
	Name       = "name"
	Namespace  = "namespace"
	Path       = "path"
	PID        = "pid"
	Pipe       = "pipe"
	Reason     = "reason"
	Revision   = "revision"
	Rule       = "rule"
	Stack      = "stack"
	UID        = "uid"
	Version    = "version"
)
