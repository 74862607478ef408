package aclcmd

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/auditcmd"
	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/core/access"
)

// recordedRequest returns the request of a record, the record, and what speaks against its log. Each record of a call has all that the access list was told.
func recordedRequest(cmd *cobra.Command, file, id string) (call access.Call, found *audit.Event, doubt, err error) {
	found, doubt, err = auditcmd.FindRecord(cmd, file, id, fmt.Sprintf("request %q whose method is known", id), true, func(e *audit.Event) bool { return e.What != nil && e.What.Method != "" })
	if err != nil {
		return call, nil, nil, err
	}
	call, isWhole := RecordedCall(found)
	if !isWhole {
		return call, nil, doubt, fmt.Errorf("the record of %q was shortened: not all of its paths are known any more", id)
	}
	return call, found, doubt, nil
}

// RecordedCall returns what the proxy asked its access list about a call that was recorded, and whether the record names all that the call named.
func RecordedCall(e *audit.Event) (call access.Call, isWhole bool) {
	call, isWhole = access.Call{Group: e.What.Group, Version: e.What.Version, Operation: e.What.Method, Caller: e.Who.Caller()}, true
	for _, t := range e.What.Targets {
		switch t.Kind {
		case "path":
			call.Paths = append(call.Paths, t.Value)
		case "share":
			call.Shares = append(call.Shares, t.Value)
		case "service":
			call.Services = append(call.Services, t.Value)
		case "cut":
			isWhole = false
		}
	}
	return call, isWhole
}
