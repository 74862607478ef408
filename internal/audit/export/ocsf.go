package export

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/query"
)

// ocsfVersion is the schema that events are made for, https://schema.ocsf.io/1.6.0.
const ocsfVersion = "1.6.0"

// Classes of events.
const (
	classNetwork   = 4001 // Network Activity: a connection has ended or was refused
	classLifecycle = 6002 // Application Lifecycle: the log was opened or closed
	classAPI       = 6003 // API Activity: a request or an admission
)

// ocsf is a record as an event of the Open Cybersecurity Schema Framework.
func ocsf(r query.Record) object {
	e, p := &r.Event, parts(&r.Event)
	unmapped := filled(object{
		"assurance": p.who.Assurance, "doubt": p.who.Doubt, "namespace": p.who.Pod.Namespace, "pod": p.who.Pod.Name,
		"service_account": p.who.Pod.ServiceAccount, "token_state": p.who.TokenState, "more_targets": max(0, p.what.MoreTargets),
		"connection": p.conn, "admission_uid": p.admission, "prev": r.Prev,
	})
	unmapped["stage"], unmapped["record_type"] = e.Stage, e.Type
	o := filled(object{"metadata": ocsfMetadata(r), "message": p.detail(), "unmapped": unmapped})
	o["time"], o["severity_id"] = e.Time.UnixMilli(), severity(e)
	o["severity"] = []string{"Unknown", "Informational", "Low", "Medium", "High"}[severity(e)]
	ocsfStatus(o, e, p)
	if p.node != "" {
		o["device"] = object{"hostname": p.node, "type_id": 1, "type": "Server"}
	}
	if n := e.Count(); n > 1 {
		o["count"] = n
	}
	if !p.outcome.First.IsZero() { // a summary
		o["start_time"], o["end_time"] = p.outcome.First.UnixMilli(), e.Time.UnixMilli()
	}

	class, activity, name := classAPI, 0, ""
	switch e.Type {
	case audit.TypeLog:
		class = classLifecycle
		activity, name = ocsfLog(e.Stage)
		o["app"] = object{"name": "Pipeguard audit log", "vendor_name": "Pipeguard"}
	case audit.TypeConnection:
		class, activity, name = classNetwork, 2, "Close"
		if p.outcome.Result == audit.ResultRejected {
			activity, name = 5, "Refuse"
		}
		o["src_endpoint"] = source(p)
		o["dst_endpoint"] = object{"svc_name": p.what.Pipe, "name": cmp.Or(p.node, p.what.Pipe)}
		o["actor"] = actor(p)
	default:
		activity, name = ocsfActivity(p.what)
		o["actor"], o["src_endpoint"], o["api"] = actor(p), source(p), ocsfAPI(e, p)
		var resources []object
		for _, t := range p.what.Targets {
			resources = append(resources, object{"type": t.Kind, "name": cmp.Or(t.Canonical, t.Value)})
		}
		if resources != nil {
			o["resources"] = resources
		}
	}
	o["category_uid"], o["class_uid"], o["activity_id"], o["type_uid"] = class/1000, class, activity, class*100+activity
	o["activity_name"] = name
	return o
}

func ocsfMetadata(r query.Record) object {
	m := object{
		"version": ocsfVersion, "product": object{"name": "Pipeguard", "vendor_name": "Pipeguard"}, "profiles": []string{"container", "host", "security_control"},
		"sequence": r.Seq, "log_name": "audit", "log_version": "1", "original_time": rfc3339(r.Time),
		"uid": fmt.Sprintf("%s/%d", r.Session, r.Seq), // numbers are unique within a session
	}
	if r.ID != "" {
		m["correlation_uid"] = r.ID
	}
	return m
}

// severity is 1 informational, 2 low, 3 medium, 4 high.
func severity(e *audit.Event) int {
	switch d := query.Decision(e); {
	case e.Stage == audit.StagePanic, e.Stage == audit.StageOrphaned:
		return 4
	case d == query.DecisionDeny, d == query.DecisionLogOnly:
		return 3
	case e.Outcome != nil && (e.Outcome.Result == audit.ResultError || e.Outcome.Result == audit.ResultRejected):
		return 2
	}
	return 1
}

// ocsfStatus says how it ended, and with the profile security_control what was done about it.
func ocsfStatus(o object, e *audit.Event, p whole) {
	o["status_id"], o["status"] = 0, "Unknown"
	if e.Outcome != nil {
		o["status_id"], o["status"] = 2, "Failure"
		if p.isGood() {
			o["status_id"], o["status"] = 1, "Success"
		}
		maps.Copy(o, filled(object{"status_code": p.outcome.Code, "status_detail": p.detail()}))
		o["duration"] = p.outcome.LatencyUS / 1000
	}
	switch query.Decision(e) {
	case query.DecisionAllow:
		o["action_id"], o["action"], o["disposition_id"], o["disposition"] = 1, "Allowed", 1, "Allowed"
	case query.DecisionDeny:
		o["action_id"], o["action"], o["disposition_id"], o["disposition"] = 2, "Denied", 2, "Blocked"
	case query.DecisionLogOnly: // observed, and let through
		o["action_id"], o["action"], o["disposition_id"], o["disposition"] = 3, "Observed", 17, "Logged"
	}
	maps.Copy(o, filled(object{"policy": filled(object{
		"name": p.decision.Policy.Name, "uid": p.decision.Rule, "version": p.decision.Policy.Revision, "desc": p.decision.Reason,
	})}))
}

func ocsfLog(stage audit.Stage) (int, string) {
	switch stage {
	case audit.StageLogOpen:
		return 3, "Start"
	case audit.StageLogClose:
		return 4, "Stop"
	}
	return 99, string(stage)
}

// ocsfActivity is what a method does: a write that neither makes nor removes changes.
func ocsfActivity(w audit.What) (int, string) {
	begins := func(words ...string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return strings.HasPrefix(w.Method, word) })
	}
	switch {
	case w.Verb == "read":
		return 2, "Read"
	case w.Verb == "CREATE", w.Verb == "write" && begins("Create", "Mkdir", "Add", "New"):
		return 1, "Create"
	case w.Verb == "write" && begins("Delete", "Rmdir", "Remove"):
		return 4, "Delete"
	case w.Verb == "UPDATE", w.Verb == "write":
		return 3, "Update"
	case w.Verb == "":
		return 0, "Unknown"
	}
	return 99, w.Verb
}

func ocsfAPI(e *audit.Event, p whole) object {
	return filled(object{
		"operation": cmp.Or(p.what.Method, p.what.FullMethod, p.what.Verb, "unknown"),
		"version":   p.what.Version,
		"service":   filled(object{"name": p.what.Pipe}),
		"request":   object{"uid": cmp.Or(e.ID, "unknown")},
		"response":  filled(object{"error": p.outcome.Code, "error_message": p.outcome.Error}),
	})
}

// actor is who asked. It always says something: the schema wants it.
func actor(p whole) object {
	w := p.who
	a := filled(object{"user": filled(object{"uid": w.User.SID, "name": w.User.Name})})
	if w.Process.PID != 0 {
		process := filled(object{
			"pid": w.Process.PID, "name": query.Base(w.Process.Exe),
			"container": filled(object{
				"uid": w.Container.ID, "name": w.Container.Name, "pod_uuid": w.Pod.UID,
				"image": filled(object{"name": w.Container.Image, "uid": w.Container.Image}),
			}),
		})
		if w.Process.Exe != "" {
			process["file"] = object{"path": w.Process.Exe, "name": cmp.Or(query.Base(w.Process.Exe), w.Process.Exe), "type_id": 1}
		}
		if !w.Process.Start.IsZero() {
			process["created_time"] = w.Process.Start.UnixMilli()
		}
		a["process"] = process
	}
	if len(a) == 0 {
		a["app_name"] = "unknown"
	}
	return a
}

func source(p whole) object {
	return filled(object{"name": cmp.Or(strings.Trim(p.who.Pod.Namespace+"/"+p.who.Pod.Name, "/"), p.node, "unknown"), "uid": p.who.Pod.UID})
}
