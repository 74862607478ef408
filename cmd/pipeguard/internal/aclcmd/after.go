package aclcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/policysource"
	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/config"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/internal/proxy/requestpolicy"
)

// afterList says if the request policy of the same configuration refuses a call that the list allows; named says whether the list names the
// caller for it. An access list that allows a call is half of the answer.
func afterList(ctx context.Context, settings config.Proxy, e *audit.Event, named bool) (string, error) {
	var added policy.Modules
	note := ""
	if dir := settings.RequestPolicy.Modules; dir != "" {
		m, err := policysource.LoadModules(dir)
		if err != nil {
			note = fmt.Sprintf("; its modules in %s could not be read, and were not asked", dir)
		}
		added = m
	}
	input, err := requestpolicy.FromRecord(e, named)
	switch {
	case errors.Is(err, requestpolicy.ErrNotShown):
		return refusedNext(requestpolicy.NotShown(err)), nil
	case err != nil:
		return "the request policy is asked next, and this record does not tell enough for that: " + err.Error(), nil //nolint:nilerr // the answer says it
	}
	s := policysource.BesideBuiltIn(added)
	if len(s.Problems) > 0 {
		return "", fmt.Errorf("request policy: %s", s.Problems[0].Message)
	}
	evaluator, err := requestpolicy.New(policy.Options{BaseTested: true})
	if err != nil {
		return "", err
	}
	if _, err := evaluator.Activate(ctx, s.Modules); err != nil {
		return "", fmt.Errorf("request policy: %w", err)
	}
	if d := evaluator.DecideInput(ctx, input); !d.Allowed() {
		return refusedNext(d) + note, nil
	}
	if note != "" {
		return "the request policy is asked next" + note, nil
	}
	return "", nil
}

func refusedNext(d requestpolicy.Decision) string {
	return fmt.Sprintf("the request policy is asked next, and refuses: %s: %s", d.Rule, d.Reason)
}

// eventOf makes a record of a call from what the list is told; the fields of its request are empty.
func eventOf(r access.Call) *audit.Event {
	e := &audit.Event{
		Type: audit.TypeRequest, Time: time.Now(),
		Who:  audit.WhoOf(r.Caller),
		What: &audit.What{Pipe: "csi-proxy-" + r.Group + "-" + r.Version, Group: r.Group, Version: r.Version, Method: r.Operation, FullMethod: r.Operation, Params: json.RawMessage(`{}`)},
	}
	if name, isForwarded := strings.CutPrefix(r.Group, fullPipe); isForwarded {
		e.What.Pipe, e.What.Params = name, nil
	}
	return e
}
