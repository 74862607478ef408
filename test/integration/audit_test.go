//go:build !windows

package integration

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/entries"
	"github.com/pipeguard/pipeguard/test/integration/cluster"
)

// decisionLine is how a refusal ends: its id, and as much of the revision as a person compares.
var decisionLine = regexp.MustCompile(`\nDecision ([a-z0-9]{16}), policy (sha256:[0-9a-f]{12})\.$`)

// One decision has one id: in the message, in the API server's audit log and in the webhook's own record.
func TestADecisionIsTheSameInEveryLog(t *testing.T) {
	webhook := guarded(t)
	others := namespace(t, "others")
	for name, c := range map[string]struct {
		pod          *corev1.Pod
		effect, code string
		allowed      bool
	}{
		"refused":  {pod(others, "", pipe), "deny", "PG001", false},
		"admitted": {pod(drivers, driver, pipe), "allow", "", true},
		"audited":  {pod(others, "", `C:\Windows`), "audit", "PG008", true},
		"warned": {func() *corev1.Pod {
			p := pod(others, "")
			p.Annotations = map[string]string{"microsoft.com/hostprocess-container": "true"}
			return p
		}(), "warn", "PG006", true},
	} {
		t.Run(name, func(t *testing.T) {
			answer := at(t).api.Client.Create(t.Context(), c.pod)
			event := audited(t, func(e *cluster.AuditEvent) bool {
				return e.ObjectRef.Namespace == c.pod.Namespace && e.ObjectRef.Name == c.pod.Name
			})
			var record *audit.Event
			eventually(t, "the decision has a record", func(context.Context) error { // which may be written after the answer
				for _, r := range recordsOf(t, webhook, c.pod.Namespace, 0) {
					if r.Who.Pod.Name == c.pod.Name && r.Decision.Policy != nil {
						record = &r
						return nil
					}
				}
				return errors.New("there is none")
			})
			entry := "pods.pipeguard.dev/"
			switch c.code { // no pipe could be reached
			case "PG006":
				entry = entries.ProcessPrefix + entry
			case "PG008":
				entry = entries.PathPrefix + entry
			}
			want := map[string]string{
				entry + "decision-id": record.ID,
				entry + "revision":    record.Decision.Policy.Revision,
				entry + "effect":      c.effect,
			}
			if c.code != "" {
				want[entry+"codes"] = c.code
			}
			got := map[string]string{}
			for k, v := range event.Annotations {
				if strings.Contains(k, "pods.pipeguard.dev/") {
					got[k] = v
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("audit annotations (-want +got):\n%s", diff)
			}
			if record.Decision.Rule != c.code || (record.Decision.Effect == audit.EffectAllow) != c.allowed {
				t.Errorf("record: %+v", record.Decision)
			}
			if record.Who.User == nil || record.Who.User.Name != event.User.Username {
				t.Errorf("recorded for %+v, asked by %s", record.Who.User, event.User.Username)
			}
			if c.allowed {
				if answer != nil || event.ResponseStatus.Code != http.StatusCreated {
					t.Errorf("answered %v, audited %+v", answer, event.ResponseStatus)
				}
				return
			}
			status := refused(t, answer, c.code)
			line := decisionLine.FindStringSubmatch(status.Message)
			if line == nil || line[1] != record.ID || line[2] != record.Decision.Policy.Revision[:len(line[2])] {
				t.Errorf("the message ends with %q, the record is of %s by %s", line, record.ID, record.Decision.Policy.Revision)
			}
			if event.ResponseStatus.Code != http.StatusForbidden {
				t.Errorf("audited with status %+v", event.ResponseStatus)
			}
		})
	}
}
