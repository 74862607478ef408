// Package wmi asks Windows Management Instrumentation: it selects instances, follows their associations and executes methods.
// It trusts no text of a caller: what would have to be quoted in a query is refused.
//
// WMI is reached through its native COM interfaces, of which each question uses one thread of a Pool. A fault of memory inside
// of them ends the process; nothing in Go can prevent that.
package wmi
