package audit

import (
	"encoding/json"
	"strings"
	"time"
)

// goldenEvent is a record whose bytes are kept for ever.
type goldenEvent struct {
	name  string
	event Event
	isCut bool // it is longer than a record may be
}

// goldenEvents are one record of each kind that the programs write. They are never changed: add others at the end.
func goldenEvents() []goldenEvent {
	hash := strings.Repeat("q", 42) + "o="
	at := time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)
	pod := &Who{
		Assurance: "pod",
		Process:   &WhoProcess{PID: 813, Start: at.Add(-time.Hour), Exe: `C:\csi\smb.exe`},
		User:      &WhoUser{SID: "S-1-5-93-2-1", Name: `User Manager\ContainerAdministrator`},
		Pod:       &WhoPod{Namespace: "kube-system", Name: "csi-smb-node-x", UID: "6f1c0f3e-7a0e-4d7a-9a51-0e6d6f6b0001", ServiceAccount: "csi-smb-node-sa"},
		Container: &WhoContainer{ID: "c0ffee", Name: "smb", Image: "registry.example/smb:v1"},
	}
	withToken := func(has bool, id, state string) *Who {
		w := *pod
		w.Token, w.TokenID, w.TokenState = has, id, state
		return &w
	}
	hostProcess := *pod
	hostProcess.Container = &WhoContainer{ID: "c0ffee", Name: "smb", Image: "registry.example/smb:v1", HostProcess: true}
	node := &Who{Assurance: "process", Process: &WhoProcess{PID: 4, Exe: `C:\Windows\System32\cmd.exe`}, User: &WhoUser{SID: "S-1-5-18"}, Host: true}
	doubt := &Who{Assurance: "process", Process: &WhoProcess{PID: 5}, Doubt: "whether it is in a container: context deadline exceeded"}
	nobody := &Who{Assurance: "none"}

	link := &What{
		Pipe: "csi-proxy-filesystem-v1alpha1", Group: "filesystem", Version: "v1alpha1", Method: "CreateSymlink", FullMethod: "/v1alpha1.Filesystem/LinkPath", Verb: "write",
		Params:  json.RawMessage(`{"source_path":"C:\\var\\lib\\kubelet\\a","target_path":"C:\\b\u202e"}`),
		Targets: []Target{{Kind: "path", Value: `C:\var\lib\kubelet\a`}, {Kind: "path", Value: "C:\\b\u202e"}},
	}
	mapping := &What{
		Pipe: "csi-proxy-smb-v1", Group: "smb", Version: "v1", Method: "NewSmbGlobalMapping", FullMethod: "/v1.Smb/NewSmbGlobalMapping", Verb: "write",
		Params: json.RawMessage(`{"remote_path":"\\\\server\\share","username":"u","password":"[redacted]"}`), Redacted: []string{"password"},
		Targets: []Target{{Kind: "share", Value: `\\server\share`}},
	}
	format := &What{Pipe: "csi-proxy-volume-v1", Group: "volume", Version: "v1", Method: "FormatVolume", FullMethod: "/v1.Volume/FormatVolume", Verb: "write", Params: json.RawMessage(`{"volume_id":"v"}`)}
	passed := &What{Pipe: "csi-proxy-disk-v1", Group: "disk", Version: "v1", Method: "ListDiskIDs", FullMethod: "/v1.Disk/ListDiskIDs", Verb: "read"}
	pipe := &What{Pipe: "csi-proxy-disk-v1", Group: "disk", Version: "v1"}

	allow := &Decision{Effect: EffectAllow, Reason: "rule smb/node", Rule: "smb/node", Policy: &Policy{Name: "bundle", Revision: "sha256:00ff", Bundle: 1767323045}, Mode: "Enforce", Permits: []string{"reformat"}}
	deny := &Decision{Effect: EffectDeny, Reason: "no rule that allows CreateSymlink here names this caller", Policy: &Policy{Name: "acl", Revision: "sha256:00ff"}, Mode: "Enforce"}
	rego := &Decision{Effect: EffectDeny, Reason: "not named", Rule: "PN004", Policy: &Policy{Name: "request", Revision: "sha256:00ff", Bundle: 1767323045}, Mode: "Enforce"}
	tried := *deny
	tried.Mode = "LogOnly"
	where, corr := &Where{Node: "win-1"}, &Corr{Conn: "CONNECTION"}

	var out []goldenEvent
	add := func(name string, e Event) {
		e.V, e.Seq, e.Session = Version, uint64(len(out)+1), "SESSIONSESSIONSESSIONSESSI"
		e.Time = at.Add(time.Duration(len(out)) * time.Second)
		if e.Prev = hash; e.Type == TypeAdmission {
			e.Prev = "" // its log is a stream
		}
		if e.Type != TypeAdmission {
			e.Where = where
		}
		out = append(out, goldenEvent{name: name, event: e})
	}
	request := func(name string, stage Stage, who *Who, what *What, d *Decision, o *Outcome, intent uint64) {
		add(name, Event{Type: TypeRequest, Stage: stage, ID: "REQUEST", IntentSeq: intent, Who: who, What: what, Decision: d, Outcome: o, Corr: corr})
	}
	ok := &Outcome{Result: ResultOK, Code: "OK", LatencyUS: 900}
	denied := &Outcome{Result: ResultDenied, Code: "PermissionDenied", Error: "pipe csi-proxy-filesystem-v1alpha1: CreateSymlink is denied (audit id REQUEST)", LatencyUS: 40}

	request("allowed, intent", StageRequestReceived, pod, link, allow, nil, 0)
	request("allowed, end", StageResponseComplete, pod, link, allow, ok, 1)
	request("an operation that failed", StageResponseComplete, pod, mapping, allow, &Outcome{Result: ResultError, Code: "Internal", Error: "access is denied <0x5> & more", LatencyUS: 1200}, 1)
	request("a caller that left", StageResponseComplete, pod, mapping, allow, &Outcome{Result: ResultOK, Code: "OK", LatencyUS: 30_000_000, CallerLeft: true}, 1)
	request("denied by the list", StageResponseComplete, pod, link, deny, denied, 0)
	request("denied by Rego in a bundle", StageResponseComplete, pod, format, rego, denied, 0)
	request("denied and let go on", StageRequestReceived, pod, link, &tried, nil, 0)
	request("denied and let go on, end", StageResponseComplete, pod, link, &tried, ok, 7)
	request("rejected", StageResponseComplete, nobody, &What{Pipe: "csi-proxy-disk-v1", Group: "disk", Version: "v1", FullMethod: "/v1.Disk/Nothing\n\x1b[31m"}, nil, &Outcome{Result: ResultRejected, Code: "Unimplemented", Error: "unknown method"}, 0)
	request("panic", StagePanic, pod, link, allow, &Outcome{Result: ResultPanic, Code: "Internal", Error: "runtime error: index out of range [3] with length 3", LatencyUS: 77}, 1)
	request("orphaned", StageOrphaned, pod, link, allow, &Outcome{Result: ResultOrphaned, Code: "Unknown", Error: "the process ended before the operation was recorded to have"}, 1)
	request("passed on unread, intent", StageRequestReceived, pod, passed, allow, nil, 0)
	request("passed on unread, end", StageResponseComplete, pod, passed, allow, ok, 12)
	request("a token", StageRequestReceived, withToken(true, "token-1", ""), link, allow, nil, 0)
	request("a stale token", StageRequestReceived, withToken(true, "token-1", TokenStale), link, allow, nil, 0)
	request("an unbound token", StageResponseComplete, withToken(false, "", TokenUnbound), link, deny, denied, 0)
	request("a host process", StageResponseComplete, &hostProcess, link, deny, denied, 0)
	request("a process of the node", StageResponseComplete, node, link, deny, denied, 0)
	request("a caller in doubt", StageResponseComplete, doubt, link, deny, denied, 0)
	add("written again", Event{Type: TypeRequest, Stage: StageResponseComplete, ID: "REQUEST", IntentSeq: 1, Again: true, Who: pod, What: link, Decision: allow, Outcome: ok, Corr: corr})

	connection := func(name string, who *Who, o *Outcome) {
		add(name, Event{Type: TypeConnection, Stage: StageConnectionClosed, ID: "CONNECTION", Who: who, What: pipe, Outcome: o, Corr: corr})
	}
	connection("a connection with requests", pod, &Outcome{Result: ResultOK, Code: "OK", LatencyUS: 60_000_000})
	connection("an idle connection", pod, &Outcome{Result: ResultIdle, Code: "OK", Error: "closed without a request", LatencyUS: 3})
	connection("a refused connection", nobody, &Outcome{Result: ResultRejected, Code: "Unavailable", Error: "the caller cannot be identified: process 7 has ended"})

	admission := func(name string, effect Effect, reason, rule, result, code string, pod *WhoPod, params json.RawMessage) {
		add(name, Event{
			Type: TypeAdmission, Stage: StageResponseComplete, ID: "DECISION",
			Who:      &Who{Assurance: "apiserver", User: &WhoUser{Name: "system:serviceaccount:kube-system:daemon-set-controller", Groups: []string{"system:serviceaccounts", "system:authenticated"}}, Pod: pod},
			What:     &What{Verb: "CREATE", Params: params, Targets: []Target{{Kind: "pipe", Value: `\\.\pipe\CSI-Proxy-Disk-V1`, Canonical: `\\.\pipe\csi-proxy-disk-v1`}}},
			Decision: &Decision{Effect: effect, Reason: reason, Rule: rule, Policy: &Policy{Revision: "sha256:00ff"}, Mode: "Enforce"},
			Outcome:  &Outcome{Result: result, Code: code, LatencyUS: 800}, Corr: &Corr{AdmissionUID: "0b4f5f0e-0000-4000-8000-000000000001"},
		})
	}
	admission("admitted", EffectAllow, "no finding", "", ResultOK, "200", pod.Pod, nil)
	admission("refused", EffectDeny, "PG002", "PG002", ResultDenied, "403", &WhoPod{Namespace: "web", ServiceAccount: "default"}, json.RawMessage(`{"kind":"Deployment.apps","namespace":"web","name":"web"}`))
	admission("not judged", EffectDeny, "object", "PG999", ResultRejected, "400", nil, nil)

	log := func(name string, stage Stage, g *Log) { add(name, Event{Type: TypeLog, Stage: stage, Log: g}) }
	segment := func(n string) string {
		return "audit-" + strings.Repeat("0", 20-len(n)) + n + "-00000000-0000-4000-8000-000000000001.jsonl"
	}
	next := func(cause string) *Log {
		return &Log{PreviousSession: "BEFOREBEFOREBEFOREBEFOREBE", PreviousSeq: 26, PreviousSegment: segment("7"), PreviousBytes: 16384, Cause: cause, Note: "This file is a segment."}
	}
	log("an empty log", StageLogOpen, &Log{Cause: CauseStart, Note: "This file is a segment."})
	log("a stream or file without segments", StageLogOpen, &Log{PreviousSession: "BEFOREBEFOREBEFOREBEFOREBE", PreviousSeq: 26, TornBytes: 12})
	log("after a length", StageLogOpen, next(CauseSize))
	log("after an age", StageLogOpen, next(CauseAge))
	failed := next(CauseFailure)
	failed.Fault, failed.TornBytes, failed.Void, failed.VoidHeld = "no space left on device", 2048, []string{segment("27")}, []string{"0 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}
	failed.Lost, failed.OldestOpen = 3, 20
	log("after a failure", StageLogOpen, failed)
	missing := next(CauseMissing)
	missing.Unreserved = true
	log("after the segment was taken away", StageLogOpen, missing)
	crashed := next(CauseStart)
	crashed.TornBytes, crashed.Orphaned, crashed.OldestOpen = 100, 2, 24
	log("after a crash", StageLogOpen, crashed)
	log("closed", StageLogClose, nil)
	log("pruned", StageLogPrune, &Log{Pruned: &Pruned{Segments: []string{segment("1"), segment("4")}, FirstSeq: 1, LastSeq: 6, TreeSize: 34, Root: hash, Reason: CauseSize}})
	log("pruned without evidence", StageLogPrune, &Log{Pruned: &Pruned{Segments: []string{segment("7")}, FirstSeq: 7, LastSeq: 26, TreeSize: 35, Reason: CauseAge}})

	long := *link
	long.Params = json.RawMessage(`{"source_path":"` + strings.Repeat("a", 5000) + `"}`)
	long.Targets = nil
	for range 40 {
		long.Targets = append(long.Targets, Target{Kind: "path", Value: strings.Repeat("\u202e", 300)})
	}
	request("longer than a record may be", StageRequestReceived, pod, &long, allow, nil, 0)
	out[len(out)-1].isCut = true

	spree := *link
	spree.FullMethod, spree.Params, spree.MoreTargets = "", nil, 12
	add("many denied", Event{Type: TypeRequest, Stage: StageSummary, ID: "SUMMARY", Who: withToken(false, "", TokenSeveral), What: &spree, Decision: deny, Outcome: &Outcome{
		Result: ResultDenied, Code: "PermissionDenied", Error: "no rule that allows CreateSymlink here names this caller", Count: 7357, First: at, LatencyUS: 40,
	}})
	add("many empty connections", Event{Type: TypeConnection, Stage: StageSummary, ID: "SUMMARY", Who: nobody, What: pipe, Outcome: &Outcome{
		Result: ResultIdle, Code: "OK", Error: "closed without a request", Count: 2000, First: at, LatencyUS: 3,
	}})
	torn := next(CauseStart)
	torn.TornBytes, torn.PreviousTornHash = 100, strings.Repeat("0f", 32)
	log("after a crash, with the hash of what it left", StageLogOpen, torn)
	log("closed with records missing", StageLogClose, &Log{Cause: CauseStop, Unwritten: 611})
	unsigned := next(CauseStart)
	unsigned.Unsigned = 3
	log("after a crash, with records that nobody had signed", StageLogOpen, unsigned)
	named := next(CauseSize)
	named.Segment = segment("27")
	log("of a segment that says its name", StageLogOpen, named)
	return out
}
