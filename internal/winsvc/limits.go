package winsvc

import (
	"slices"
	"strings"
)

// SIDType says whether the process of a service carries the service's own identity, NT SERVICE\NAME.
type SIDType string

// Types of service SIDs, in the words of sc.exe.
const (
	NoSID           SIDType = "none"
	UnrestrictedSID SIDType = "unrestricted"
	RestrictedSID   SIDType = "restricted"
)

// Limits are what the service manager puts on the process of a service when it starts it.
type Limits struct {
	SID SIDType
	// Privileges are those that the process keeps, by their Windows names. An empty list keeps all that the account has.
	Privileges []string
}

// Equal compares two limits. Neither the order of privileges nor their case matters.
func (l Limits) Equal(other Limits) bool {
	return l.SID == other.SID && slices.Equal(l.sorted(), other.sorted())
}

func (l Limits) sorted() []string {
	names := make([]string, 0, len(l.Privileges))
	for _, name := range l.Privileges {
		names = append(names, strings.ToLower(name))
	}
	slices.Sort(names)
	return slices.Compact(names)
}
