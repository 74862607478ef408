package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
)

// recordedRequest asks again what a record says was asked. It has no more of the caller than the record has: no container,
// image and token.
func recordedRequest(cmd *cobra.Command, file, id string) (acl.Request, error) {
	var found *audit.Event
	err := withFile(cmd, file, func(r io.Reader) error {
		for event, err := range audit.Read(r) {
			var line *audit.LineError
			switch {
			case errors.As(err, &line): // a line that is none of the record's
				continue
			case err != nil:
				return badInput(fmt.Errorf("read %s: %w", file, err))
			case event.ID == id && event.Type == audit.TypeRequest && event.What != nil && event.What.Method != "":
				found = &event
				return nil
			}
		}
		return nil
	})
	if err != nil {
		return acl.Request{}, err
	}
	if found == nil {
		return acl.Request{}, badInput(fmt.Errorf("%s has no request %q whose method is known", file, id))
	}
	return requestOf(found), nil
}

func requestOf(e *audit.Event) acl.Request {
	r := acl.Request{Group: e.What.Group, Version: e.What.Version, Operation: e.What.Method}
	for _, t := range e.What.Targets {
		if t.Kind == "path" {
			r.Paths = append(r.Paths, t.Value)
		}
	}
	w := e.Who
	if w == nil {
		return r
	}
	r.Caller.Assurance = w.Assurance
	if w.Process != nil {
		r.Caller.Exe = w.Process.Exe
	}
	if w.User != nil {
		r.Caller.User = w.User.SID
	}
	if w.Pod != nil {
		r.Caller.Namespace, r.Caller.ServiceAccount, r.Caller.Pod = w.Pod.Namespace, w.Pod.ServiceAccount, w.Pod.Name
	}
	return r
}
