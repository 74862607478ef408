package export

import (
	"cmp"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/query"
)

// ecsVersion is the schema that documents are made for, https://www.elastic.co/docs/reference/ecs.
const ecsVersion = "8.17.0"

// ecs is a record as a document of the Elastic Common Schema. What the schema has no name for stands below pipeguard.
func ecs(r query.Record) object {
	e, p := &r.Event, parts(&r.Event)
	process, container, pod := p.who.Process, p.who.Container, p.who.Pod
	o := filled(object{
		"@timestamp": rfc3339(e.Time),
		"ecs":        object{"version": ecsVersion},
		"event":      ecsEvent(r, p),
		"message":    p.detail(),
		"user":       filled(object{"id": p.who.User.SID, "name": p.who.User.Name}),
		"container":  filled(object{"id": container.ID, "name": container.Name, "image": filled(object{"name": container.Image})}),
		"rule":       filled(object{"name": p.decision.Rule, "ruleset": p.decision.Policy.Name, "version": p.decision.Policy.Revision}),
		"host":       filled(object{"name": p.node}),
		"pipeguard":  ecsOwn(r, p),
	})
	if p.outcome.Error != "" {
		o["error"] = filled(object{"message": p.outcome.Error, "code": p.outcome.Code})
	}
	if process.PID != 0 {
		fields := filled(object{"pid": process.PID, "executable": process.Exe, "name": query.Base(process.Exe)})
		if !process.Start.IsZero() {
			fields["start"] = rfc3339(process.Start)
		}
		o["process"] = fields
	}
	if pod.Name != "" || pod.Namespace != "" {
		o["orchestrator"] = filled(object{
			"type": "kubernetes", "resource": filled(object{"type": "pod", "name": pod.Name, "id": pod.UID}), "namespace": pod.Namespace,
		})
	}
	return o
}

func ecsEvent(r query.Record, p whole) object {
	e := &r.Event
	event := object{
		"kind": "event", "module": "pipeguard", "dataset": "pipeguard.audit", "provider": "pipeguard", "category": []string{"api"}, "outcome": "unknown",
		"id": r.ID, "reason": p.decision.Reason, "code": p.outcome.Code, "action": cmp.Or(p.what.Method, p.what.Verb, string(e.Stage)),
	}
	if !p.outcome.First.IsZero() { // a summary
		event["start"], event["end"] = rfc3339(p.outcome.First), rfc3339(e.Time)
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
	event["type"] = types
	event = filled(event)
	event["sequence"] = r.Seq
	if e.Outcome != nil {
		event["outcome"] = "failure"
		if p.isGood() {
			event["outcome"] = "success"
		}
		event["duration"] = min(max(p.outcome.LatencyUS, 0), 1<<53/1000) * 1000 // nanoseconds
	}
	return event
}

func ecsOwn(r query.Record, p whole) object {
	var targets []object
	for _, t := range p.what.Targets {
		target := filled(object{"canonical": t.Canonical})
		target["kind"], target["value"] = t.Kind, t.Value
		targets = append(targets, target)
	}
	own := filled(object{
		"assurance": p.who.Assurance, "doubt": p.who.Doubt, "service_account": p.who.Pod.ServiceAccount, "token_state": p.who.TokenState,
		"host": p.who.Host, "host_process": p.who.Container.HostProcess,
		"pipe": p.what.Pipe, "group": p.what.Group, "version": p.what.Version, "full_method": p.what.FullMethod, "verb": p.what.Verb,
		"targets": targets, "more_targets": max(0, p.what.MoreTargets), "bundle": p.decision.Policy.Bundle, "result": p.outcome.Result,
		"connection": p.conn, "admission_uid": p.admission, "prev": r.Prev,
	})
	own["type"], own["stage"], own["session"], own["decision"], own["count"] = r.Type, r.Stage, r.Session, query.Decision(&r.Event), r.Count()
	return own
}
