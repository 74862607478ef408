package export

import (
	"cmp"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/query"
)

// ecsVersion is the schema that documents are made for, https://www.elastic.co/docs/reference/ecs.
const ecsVersion = "8.17.0"

// ecs is a record as a document of the Elastic Common Schema. What the schema has no name for stands below pipeguard.
func ecs(r query.Record) object {
	e, p := &r.Event, parts(&r.Event)
	o := object{
		"@timestamp": e.Time.UTC().Format(time.RFC3339Nano),
		"ecs":        object{"version": ecsVersion},
		"event":      ecsEvent(r, p),
	}
	o.set("message", p.detail())
	if p.outcome.Error != "" {
		failure := object{"message": p.outcome.Error}
		failure.set("code", p.outcome.Code)
		o["error"] = failure
	}
	user := object{}
	user.set("id", p.who.User.SID)
	user.set("name", p.who.User.Name)
	o.set("user", user)
	if p.who.Process.PID != 0 {
		process := object{"pid": p.who.Process.PID}
		process.set("executable", p.who.Process.Exe)
		process.set("name", query.Base(p.who.Process.Exe))
		if !p.who.Process.Start.IsZero() {
			process["start"] = p.who.Process.Start.UTC().Format(time.RFC3339Nano)
		}
		o["process"] = process
	}
	container := object{}
	container.set("id", p.who.Container.ID)
	container.set("name", p.who.Container.Name)
	if p.who.Container.Image != "" {
		container["image"] = object{"name": p.who.Container.Image}
	}
	o.set("container", container)
	if p.who.Pod.Name != "" || p.who.Pod.Namespace != "" {
		resource := object{"type": "pod"}
		resource.set("name", p.who.Pod.Name)
		resource.set("id", p.who.Pod.UID)
		orchestrator := object{"type": "kubernetes", "resource": resource}
		orchestrator.set("namespace", p.who.Pod.Namespace)
		o["orchestrator"] = orchestrator
	}
	if e.Decision != nil {
		rule := object{}
		rule.set("name", p.decision.Rule)
		rule.set("ruleset", p.decision.Policy.Name)
		rule.set("version", p.decision.Policy.Revision)
		o.set("rule", rule)
	}
	if p.node != "" {
		o["host"] = object{"name": p.node}
	}
	o["pipeguard"] = ecsOwn(r, p)
	return o
}

func ecsEvent(r query.Record, p whole) object {
	e := &r.Event
	event := object{
		"kind": "event", "module": "pipeguard", "dataset": "pipeguard.audit", "provider": "pipeguard", "sequence": r.Seq, "category": []string{"api"}, "outcome": "unknown",
	}
	event.set("id", r.ID)
	event.set("reason", p.decision.Reason)
	event.set("code", p.outcome.Code)
	event.set("action", cmp.Or(p.what.Method, p.what.Verb, string(e.Stage)))
	if e.Outcome != nil {
		event["outcome"] = "failure"
		if p.outcome.Result == audit.ResultOK || p.outcome.Result == audit.ResultIdle {
			event["outcome"] = "success"
		}
		event["duration"] = min(max(p.outcome.LatencyUS, 0), 1<<53/1000) * 1000 // nanoseconds
	}
	if !p.outcome.First.IsZero() { // a summary
		event["start"], event["end"] = p.outcome.First.UTC().Format(time.RFC3339Nano), e.Time.UTC().Format(time.RFC3339Nano)
	}
	var types []string
	switch {
	case e.Stage == audit.StageRequestReceived:
		types = append(types, "start")
	case e.Type == audit.TypeRequest:
		types = append(types, "end")
	}
	switch e.Type {
	case audit.TypeLog:
		event["category"] = []string{"configuration"}
		types = append(types, "info")
	case audit.TypeConnection:
		event["category"] = []string{"network"}
		types = append(types, "connection", "end")
	case audit.TypeRequest:
		if p.what.Verb == "write" {
			types = append(types, "change")
		} else {
			types = append(types, "access")
		}
	case audit.TypeAdmission:
		types = append(types, "access")
	}
	switch query.Decision(e) {
	case query.DecisionAllow, query.DecisionLogOnly:
		types = append(types, "allowed")
	case query.DecisionDeny:
		types = append(types, "denied")
	}
	event.set("type", types)
	return event
}

func ecsOwn(r query.Record, p whole) object {
	own := object{"type": string(r.Type), "stage": string(r.Stage), "session": r.Session, "decision": query.Decision(&r.Event), "count": r.Count()}
	own.set("assurance", p.who.Assurance)
	own.set("doubt", p.who.Doubt)
	own.set("service_account", p.who.Pod.ServiceAccount)
	own.set("token_state", p.who.TokenState)
	own.set("pipe", p.what.Pipe)
	own.set("group", p.what.Group)
	own.set("version", p.what.Version)
	own.set("full_method", p.what.FullMethod)
	own.set("verb", p.what.Verb)
	own.set("result", p.outcome.Result)
	own.set("connection", p.conn)
	own.set("admission_uid", p.admission)
	own.set("prev", r.Prev)
	if p.decision.Policy.Bundle != 0 {
		own["bundle"] = p.decision.Policy.Bundle
	}
	if p.who.Host {
		own["host"] = true
	}
	if p.who.Container.HostProcess {
		own["host_process"] = true
	}
	var targets []object
	for _, t := range p.what.Targets {
		target := object{"kind": t.Kind, "value": t.Value}
		target.set("canonical", t.Canonical)
		targets = append(targets, target)
	}
	own.set("targets", targets)
	if n := p.what.MoreTargets; n > 0 {
		own["more_targets"] = n
	}
	return own
}
