//go:build !windows

package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/test/integration/cluster"
)

// recordsOf waits for so many decisions of a release about one namespace, and returns all that there are: a record may be written after the answer.
func recordsOf(t *testing.T, r *cluster.Release, namespace string, least int) (found []audit.Event) {
	t.Helper()
	eventually(t, "the decisions are recorded", func(context.Context) error {
		var all []audit.Event
		for _, replica := range r.Replicas {
			of, err := replica.Records()
			if err != nil {
				return err
			}
			all = append(all, of...)
		}
		found = slices.DeleteFunc(all, func(e audit.Event) bool { return e.Who == nil || e.Who.Pod == nil || e.Who.Pod.Namespace != namespace })
		if len(found) < least {
			return fmt.Errorf("%d of %d", len(found), least)
		}
		return nil
	})
	return found
}

// audited waits for the one entry of the API server's audit log that is wanted: it is written as the answer goes out.
func audited(t *testing.T, wanted func(*cluster.AuditEvent) bool) cluster.AuditEvent {
	t.Helper()
	var found []cluster.AuditEvent
	eventually(t, "the audit log has the entry", func(context.Context) (err error) {
		found, err = at(t).api.Audit.Events(func(e *cluster.AuditEvent) bool { return e.ObjectRef != nil && wanted(e) })
		if err == nil && len(found) == 0 {
			err = errors.New("there is none")
		}
		return err
	})
	if len(found) != 1 {
		t.Fatalf("%d entries: %+v", len(found), found)
	}
	return found[0]
}
