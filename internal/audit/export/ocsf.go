package export

import (
	"cmp"
	"fmt"
	"strings"
	"time"

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
	o := object{"time": e.Time.UnixMilli(), "metadata": ocsfMetadata(r), "severity_id": severity(e)}
	o["severity"] = []string{"Unknown", "Informational", "Low", "Medium", "High"}[severity(e)]
	ocsfStatus(o, e, p)
	o.set("message", p.detail())
	if p.node != "" {
		o["device"] = object{"hostname": p.node, "type_id": 1, "type": "Server"}
	}
	unmapped := object{"stage": string(e.Stage), "record_type": string(e.Type)}
	unmapped.set("assurance", p.who.Assurance)
	unmapped.set("doubt", p.who.Doubt)
	unmapped.set("namespace", p.who.Pod.Namespace)
	unmapped.set("pod", p.who.Pod.Name)
	unmapped.set("service_account", p.who.Pod.ServiceAccount)
	unmapped.set("token_state", p.who.TokenState)
	unmapped.set("connection", p.conn)
	unmapped.set("admission_uid", p.admission)
	unmapped.set("prev", r.Prev)
	if n := p.what.MoreTargets; n > 0 {
		unmapped["more_targets"] = n
	}
	o["unmapped"] = unmapped
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
		o.set("resources", resources)
	}
	o["category_uid"], o["class_uid"], o["activity_id"], o["type_uid"] = class/1000, class, activity, class*100+activity
	o["activity_name"] = name
	return o
}

func ocsfMetadata(r query.Record) object {
	m := object{
		"version": ocsfVersion, "product": object{"name": "Pipeguard", "vendor_name": "Pipeguard"}, "profiles": []string{"container", "host", "security_control"},
		"sequence": r.Seq, "log_name": "audit", "log_version": "1", "original_time": r.Time.UTC().Format(time.RFC3339Nano),
	}
	m.set("correlation_uid", r.ID)
	m["uid"] = fmt.Sprintf("%s/%d", r.Session, r.Seq) // numbers are unique within a session
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
		if p.outcome.Result == audit.ResultOK || p.outcome.Result == audit.ResultIdle {
			o["status_id"], o["status"] = 1, "Success"
		}
		o.set("status_code", p.outcome.Code)
		o.set("status_detail", p.detail())
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
	if e.Decision != nil {
		policy := object{}
		policy.set("name", p.decision.Policy.Name)
		policy.set("uid", p.decision.Rule)
		policy.set("version", p.decision.Policy.Revision)
		policy.set("desc", p.decision.Reason)
		o.set("policy", policy)
	}
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
		for _, word := range words {
			if strings.HasPrefix(w.Method, word) {
				return true
			}
		}
		return false
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
	api := object{"operation": cmp.Or(p.what.Method, p.what.FullMethod, p.what.Verb, "unknown")}
	api.set("version", p.what.Version)
	if p.what.Pipe != "" {
		api["service"] = object{"name": p.what.Pipe}
	}
	api["request"] = object{"uid": cmp.Or(e.ID, "unknown")}
	if e.Outcome != nil {
		response := object{}
		response.set("error", p.outcome.Code)
		response.set("error_message", p.outcome.Error)
		api.set("response", response)
	}
	return api
}

// actor is who asked. It always says something: the schema wants it.
func actor(p whole) object {
	a, w := object{}, p.who
	if w.Process.PID != 0 {
		process := object{"pid": w.Process.PID}
		process.set("name", query.Base(w.Process.Exe))
		if w.Process.Exe != "" {
			process["file"] = object{"path": w.Process.Exe, "name": cmp.Or(query.Base(w.Process.Exe), w.Process.Exe), "type_id": 1}
		}
		if !w.Process.Start.IsZero() {
			process["created_time"] = w.Process.Start.UnixMilli()
		}
		container := object{}
		container.set("uid", w.Container.ID)
		container.set("name", w.Container.Name)
		if w.Container.Image != "" {
			container["image"] = object{"name": w.Container.Image, "uid": w.Container.Image}
		}
		if w.Pod.UID != "" {
			container["pod_uuid"] = w.Pod.UID
		}
		process.set("container", container)
		a["process"] = process
	}
	user := object{}
	user.set("uid", w.User.SID)
	user.set("name", w.User.Name)
	a.set("user", user)
	if len(a) == 0 {
		a["app_name"] = "unknown"
	}
	return a
}

func source(p whole) object {
	o := object{"name": cmp.Or(strings.Trim(p.who.Pod.Namespace+"/"+p.who.Pod.Name, "/"), p.node, "unknown")}
	o.set("uid", p.who.Pod.UID)
	return o
}
