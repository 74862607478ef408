package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/core/access"
)

// recordedRequest asks again what a record says was asked. Each record of a call has all that the access list was told.
func recordedRequest(cmd *cobra.Command, file, id string) (r access.Call, e *audit.Event, err error) {
	var found *audit.Event
	bad, err := eachRecord(cmd, file, func(event audit.Event) bool {
		if event.ID == id && event.Type == audit.TypeRequest && event.What != nil && event.What.Method != "" {
			found = &event
		}
		return found == nil
	})
	if err != nil {
		return r, nil, badInput(err)
	}
	if found == nil {
		return r, nil, badInput(notFound(bad, "%s has no request %q whose method is known", file, id))
	}
	if isCut(found) {
		return r, nil, badInput(fmt.Errorf("the record of %q was shortened: not all of its paths are known any more", id))
	}
	return requestOf(found), found, nil
}

// isCut says whether a record does not name all that the call named.
func isCut(e *audit.Event) bool {
	return slices.ContainsFunc(e.What.Targets, func(t audit.Target) bool { return t.Kind == "cut" })
}

// requestOf puts a record into the words of the access list, as the proxy puts a call.
func requestOf(e *audit.Event) access.Call {
	r := access.Call{Group: e.What.Group, Version: e.What.Version, Operation: e.What.Method}
	for _, t := range e.What.Targets {
		switch t.Kind {
		case "path":
			r.Paths = append(r.Paths, t.Value)
		case "share":
			r.Shares = append(r.Shares, t.Value)
		case "service":
			r.Services = append(r.Services, t.Value)
		}
	}
	r.Caller = e.Who.Caller()
	return r
}
