package handler

import (
	"fmt"
	"io/fs"
	"strings"
)

// ServiceName names a Windows service: the short name of the service manager, not the one that is displayed.
// Only [ParseServiceName] should make one.
type ServiceName string

// MaxServiceName is the service manager's limit, in characters
// (https://learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-createservicew).
const MaxServiceName = 256

// ParseServiceName accepts 1 to 256 printable ASCII characters, without / and \, which the service manager
// refuses too, without quotes of any kind, which could end a text in a query, and without a space at either end.
// The service manager would take other letters; those that look alike are not worth the risk.
// Case is kept, and does not distinguish services.
func ParseServiceName(s string) (ServiceName, error) {
	switch {
	case s == "":
		return "", invalid("service name empty")
	case len(s) > MaxServiceName:
		return "", invalid("service name %s is longer than %d characters", quoted(s), MaxServiceName)
	case s[0] == ' ' || s[len(s)-1] == ' ':
		return "", invalid("service name %s begins or ends with a space", quoted(s))
	}
	for _, r := range s {
		if r < ' ' || r > '~' || strings.ContainsRune("/\\'\"`", r) {
			return "", invalid("service name %s contains invalid characters (%U)", quoted(s), r)
		}
	}
	return ServiceName(s), nil
}

// CheckDependents is the check before a forced stop: its error names the dependents that permits does not name.
func CheckDependents(name ServiceName, dependents []string, permits Permits) error {
	var unnamed []string
	for _, d := range dependents {
		if !permits.NamesService(d) {
			unnamed = append(unnamed, d)
		}
	}
	if len(unnamed) == 0 {
		return nil
	}
	return fmt.Errorf("stop service %s: a forced stop would also stop %s: the rule that allows this call must list them under services: %w",
		name, strings.Join(unnamed, ", "), fs.ErrPermission)
}
