package policycmd

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/aclcmd"
	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/proxy/requestpolicy"
)

// recordedDecision is what a record says was decided.
type recordedDecision struct {
	Effect   string    `json:"effect"`
	Rule     string    `json:"rule"`
	Reason   string    `json:"reason"`
	Policy   string    `json:"policy"`
	Revision string    `json:"revision"`
	Bundle   uint64    `json:"bundle,omitempty"`
	Mode     string    `json:"mode"`
	Time     time.Time `json:"time"`
}

type difference struct {
	Field    string `json:"field"`
	Recorded string `json:"recorded"`
	Now      string `json:"now"`
}

func (r *evalReport) ofRecord(cmd *cobra.Command, n judging, event *audit.Event) error {
	input, err := requestpolicy.FromRecord(event, r.isNamed(n.list, event))
	switch {
	case errors.Is(err, requestpolicy.ErrNotShown):
		r.Decision = requestpolicy.NotShown(err)
	case err != nil:
		return fmt.Errorf("call %s: %w", event.ID, err)
	default:
		if err := r.decide(cmd, n.evaluator, input); err != nil {
			return err
		}
	}
	r.compare(event)
	return nil
}

// isNamed asks the access list whether it names the caller of a recorded call. Without an answer, the caller counts as not named.
func (r *evalReport) isNamed(list accessList, event *audit.Event) bool {
	if list == nil {
		r.note("who is named is said by the access list: --config or --bundle asks it")
		return false
	}
	var call access.Call
	isWhole := false
	if event.What != nil {
		call, isWhole = aclcmd.RecordedCall(event)
	}
	if !isWhole {
		r.note("the record was shortened, so the access list cannot be asked who is named")
		return false
	}
	d := list.Decide(call)
	if d.Effect != access.Allow {
		r.note("the access list that was asked denies this call, so the caller is not named: " + d.Reason)
	}
	return d.Named
}

// compare says where the decision differs. What the access list refused was not asked about.
func (r *evalReport) compare(event *audit.Event) {
	d := event.Decision
	r.Recorded = &recordedDecision{Effect: string(d.Effect), Rule: d.Rule, Reason: d.Reason, Mode: d.Mode, Time: event.Time}
	if d.Policy != nil {
		r.Recorded.Policy, r.Recorded.Revision, r.Recorded.Bundle = d.Policy.Name, d.Policy.Revision, d.Policy.Bundle
	}
	if r.Recorded.Bundle != 0 && !r.isOfBundle {
		r.note(fmt.Sprintf("the rules of a bundle decided then, revision %d: --bundle asks them again", r.Recorded.Bundle))
	}
	isOurs := r.Recorded.Policy == requestpolicy.PolicyName
	switch {
	case d.Effect != audit.EffectDeny || isOurs:
	case d.Policy == nil:
		r.note("this call was refused before its caller was looked up in the access list, so the request policy was not asked about it")
		return
	case d.Rule != "":
		r.note("rule " + d.Rule + " allowed this call, and something else refused it later: what the request policy said is not recorded")
		return
	default:
		r.note("the access list refused this call, so the request policy was not asked about it")
		return
	}
	if r.Recorded.Effect != string(r.Decision.Effect) {
		r.Differences = append(r.Differences, difference{"effect", r.Recorded.Effect, string(r.Decision.Effect)})
	}
	rule := d.Rule
	if !isOurs {
		rule = "" // it is the access list's
	}
	if rule != r.Decision.Rule {
		r.Differences = append(r.Differences, difference{"rule", rule, r.Decision.Rule})
	}
	if isOurs && r.Recorded.Revision != r.Decision.Revision {
		r.note("other policies were asked then: revision " + r.Recorded.Revision)
	}
}

func (r *evalReport) note(text string) { r.Notes = append(r.Notes, text) }
