package audit

import (
	"encoding/json"
	"time"
)

// Version is the version of the record format, written as "v" in every record.
const Version = 1

// Type says what a record is about.
type Type string

// Types of records.
const (
	TypeRequest    Type = "request"    // a request on a pipe
	TypeConnection Type = "connection" // a connection to a pipe, written once, when it was refused or has ended
	TypeAdmission  Type = "admission"  // a decision of the admission webhook
	TypeLog        Type = "log"        // the log itself: opened, closed, its oldest segments removed
)

// Stage says at which point of a request's life a record was written.
type Stage string

// Stages of records. RequestReceived is the intent, written before the operation runs;
// each of the others ends what it belongs to.
const (
	// StageRequestReceived is the intent: the operation runs only after this record is on the disk.
	//record:of request
	StageRequestReceived Stage = "RequestReceived"
	// StageResponseComplete ends a request that was answered, refused ones included, and is the one record of an admission decision.
	//record:of request admission
	StageResponseComplete Stage = "ResponseComplete"
	// StagePanic ends a request that met a fault of the server.
	//record:of request
	StagePanic Stage = "Panic"
	// StageOrphaned ends an intent whose process died before it could: written by the next one, before anything else.
	// Whether the operation ran, and how it ended, is not known.
	//record:of request
	StageOrphaned Stage = "Orphaned"

	// StageSummary stands for several requests, or connections, of one caller that were refused in the same way. It is written at the end of a
	// period in which the caller was refused more often than it has room for records of their own.
	//record:of request connection
	StageSummary Stage = "Summary"

	// StageConnectionClosed is the one record of a connection.
	//record:of connection
	StageConnectionClosed Stage = "ConnectionClosed"

	// StageLogOpen is the first record of a session, and of each segment.
	//record:of log
	StageLogOpen Stage = "LogOpen"
	// StageLogClose is the last record of a session or a segment that was closed in order.
	//record:of log
	StageLogClose Stage = "LogClose"
	// StageLogPrune says which segments are removed next.
	//record:of log
	StageLogPrune Stage = "LogPrune"
)

// Results of outcomes.
const (
	ResultOK       = "ok"       // it was done, or allowed; of a connection, a request on it was admitted
	ResultError    = "error"    // the operation ran, or was about to, and ended with an error
	ResultDenied   = "denied"   // refused by a rule
	ResultRejected = "rejected" // refused before any rule was asked, or for no rule's sake: malformed, unknown, too large, too many
	ResultPanic    = "panic"    // the server's own fault
	ResultOrphaned = "orphaned" // not known: the process died in between
	ResultIdle     = "idle"     // a connection on which no request was admitted, or none was made, as stock clients leave one behind
)

// Effect is what was decided.
type Effect string

// Effects of decisions.
const (
	EffectAllow Effect = "allow" // the rules let it go on
	EffectDeny  Effect = "deny"  // they do not; in mode LogOnly it goes on all the same
)

// Event is one record: one line of JSON with the fields in this order.
type Event struct {
	// V is the version of the format. What it means is fixed for ever; another format has another number.
	V int `json:"v"`
	// Seq numbers the records, as the writer sets it: 1, 2, 3 … without gaps. In a log of segments it runs over the whole
	// life of the log; on a stream it begins anew with each session, and a record that could not be written leaves a gap.
	//record:min 1
	Seq uint64 `json:"seq"`
	// Type says what the record is about.
	Type Type `json:"type"`
	// Stage says at which point it was written.
	Stage Stage `json:"stage"`
	// Time is of the event, in UTC, by the clock of the machine: of an intent when it was asked for, of an end when it ended, of an
	// admission decision when the review began. Records stand in the order of their numbers, and their times need not rise.
	Time time.Time `json:"time"`
	// Session names one run of one process, as the writer sets it.
	//record:min 1
	//record:max 64
	Session string `json:"session"`
	// ID names one request, connection or admission decision. The two records of an admitted request share it; an answer that refuses
	// names it as audit id. It is empty in records of the log itself.
	ID string `json:"id"`
	// IntentSeq is the number of the intent that this record ends.
	//record:when in the record that ends an admitted request
	IntentSeq uint64 `json:"intent_seq,omitempty"`
	// Again says that the record was written a second time after a failed write; the first copy may be there too.
	//record:when if true
	Again bool `json:"again,omitempty"`
	// Log is what was found or done.
	//record:when in LogOpen and LogPrune
	Log *Log `json:"log,omitempty"`
	// Who is the caller.
	//record:when in requests, connections and admission decisions
	Who *Who `json:"who,omitempty"`
	// What is what was asked for.
	//record:when in requests, connections and admission decisions
	What *What `json:"what,omitempty"`
	// Decision is what was decided, and by which rule.
	//record:when in requests about which a rule or a token was asked, and admission decisions
	Decision *Decision `json:"decision,omitempty"`
	// Outcome is how it ended.
	//record:when in all but intents and records of the log itself
	Outcome *Outcome `json:"outcome,omitempty"`
	// Corr ties the record to others.
	//record:when in requests, connections and admission decisions
	Corr *Corr `json:"corr,omitempty"`
	// Where is the place that wrote the record.
	//record:when if the name of the node is known
	Where *Where `json:"where,omitempty"`
	// Prev is the RFC 6962 leaf hash of the line before: SHA-256 of a zero byte and that line without its newline. Of the first record it is
	// of 32 zero bytes.
	//record:when in a log of segments
	//record:is hash
	Prev string `json:"prev,omitempty"`
}

// Log is what a writer found when it began a session or a segment, or what it removes next. A reader compares it
// with what it has read so far: records cut off between two sessions show as a difference.
type Log struct {
	// PreviousSession is the session of the record before this one.
	//record:when if there is a record before
	//record:max 64
	PreviousSession string `json:"previous_session,omitempty"`
	// PreviousSeq is the number of the record before this one.
	//record:when if there is a record before
	PreviousSeq uint64 `json:"previous_seq,omitempty"`
	// TornBytes is how much stood behind the last record that counts: a line without its newline, or whole lines that were
	// never acknowledged and are written again here. There may be fewer of them after a loss of power.
	//record:when if there are any
	TornBytes int `json:"torn_bytes,omitempty"`

	// The fields below are for logs of segments.

	// PreviousSegment is the file that holds the record before this one.
	//record:when in a log of segments, if there is a record before
	//record:is segment
	PreviousSegment string `json:"previous_segment,omitempty"`
	// PreviousBytes is the length of the part of that file that is of the log. What stands behind it is of no meaning, whole lines included.
	//record:when in a log of segments, if there is a record before
	PreviousBytes int64 `json:"previous_bytes,omitempty"`
	// PreviousTornHash is the SHA-256 of what stood behind those bytes in that file when this segment was begun.
	//record:when in a log of segments, if there are torn bytes
	//record:is hex
	PreviousTornHash string `json:"previous_torn_hash,omitempty"`
	// Void are files between the two that hold no record of the log, whatever is in them. There are at most 32.
	//record:is segment
	Void []string `json:"void,omitempty"`
	// VoidHeld is what each of them held when this segment was begun, in the order of Void: its length in bytes, a space, and the SHA-256 of
	// what is in it in hexadecimal digits. One that is longer than any crash leaves it has no hash, and one that could not be read is empty here.
	//record:when if there are any
	VoidHeld []string `json:"void_held,omitempty"`
	// Cause is why this segment was begun, or stop in the record that ends the log.
	//record:when in a LogOpen of a log of segments, and in the last LogClose of a process
	//record:values Cause
	Cause string `json:"cause,omitempty"`
	// Fault is what was wrong with the segment before: the error of a write, or damage that was found in it.
	//record:when if something was
	Fault string `json:"fault,omitempty"`
	// Orphaned is how many open intents the records after this one end.
	//record:when if there are any
	Orphaned int `json:"orphaned,omitempty"`
	// OldestOpen is the lowest number of an intent that was open when the segment was begun.
	//record:when if there was one
	OldestOpen uint64 `json:"oldest_open,omitempty"`
	// Lost is how many records the writer let go since it last said so, told to continue without a log.
	//record:when if there are any
	Lost uint64 `json:"lost,omitempty"`
	// Unwritten is how many requests and connections ended without a record, because the log could not take one before the process stopped.
	//record:when in LogClose, if there are any
	Unwritten uint64 `json:"unwritten,omitempty"`
	// Unsigned is how many of the records before this one no checkpoint covered, because the process that wrote them did not end in order: the
	// one that begins here takes them over, and signs them without proof of who wrote them: any account that could write to the directory may have.
	//record:when in a LogOpen, if there are any
	Unsigned uint64 `json:"unsigned,omitempty"`
	// Unreserved says that the file system keeps no space for the records of admitted calls: a full disk may cost their ends.
	//record:when if true
	Unreserved bool `json:"unreserved,omitempty"`
	// Pruned are the segments that are removed next.
	//record:when in LogPrune
	Pruned *Pruned `json:"pruned,omitempty"`
	// Note tells a reader who has nothing else what the file is, and makes the first record longer than the first
	// kilobyte, by which shippers know one file from another.
	//record:when in a LogOpen of a log of segments
	Note string `json:"note,omitempty"`
	// Segment is the name of the file that this record begins, which it has for good.
	//record:when in a LogOpen of a log of segments
	//record:is segment
	Segment string `json:"segment,omitempty"`
}

// Causes of new segments.
const (
	CauseStart   = "start"   // a process began to write
	CauseSize    = "size"    // the segment before was as long as it may be
	CauseAge     = "age"     // the segment before was as old as it may be
	CauseFailure = "failure" // the segment before could not be written or flushed
	CauseMissing = "missing" // the segment before is no longer where it was
	CauseStop    = "stop"    // of a LogClose: the process stops, and nothing comes behind but the LogOpen of the next one
)

// Pruned are segments that are removed, the oldest ones of the log.
type Pruned struct {
	// Segments are their names, of files that hold no record among them.
	//record:is segment
	//record:min 1
	Segments []string `json:"segments"`
	// FirstSeq is the number of the first record in them.
	//record:min 1
	FirstSeq uint64 `json:"first_seq"`
	// LastSeq is the number of the last one: the log begins with the number after it.
	//record:min 1
	LastSeq uint64 `json:"last_seq"`
	// TreeSize is how many records the Merkle tree (RFC 6962) of all records before this one has.
	TreeSize uint64 `json:"tree_size"`
	// Root is the root hash of that tree.
	//record:when if checkpoints of the log are signed
	//record:is hash
	Root string `json:"root,omitempty"`
	// Reason is which bound of what is kept was passed.
	//record:one-of age size
	Reason string `json:"reason"`
}

// Who is the caller, as far as its identity was proven.
type Who struct {
	// Assurance is how far that is: pod (process, container and pod), process (process and account), sid (account), none
	// (nothing), or apiserver (the API server authenticated the user).
	//record:one-of pod process sid none apiserver
	Assurance string `json:"assurance"`
	// Process is the process that opened the connection.
	//record:when if it is known
	Process *WhoProcess `json:"process,omitempty"`
	// User is the account of that process, or the user of the API.
	//record:when if it is known
	User *WhoUser `json:"user,omitempty"`
	// Pod is the pod that holds the process, or the pod that an admission decision is about.
	//record:when if assurance is pod, and in admission decisions about what is in a namespace
	Pod *WhoPod `json:"pod,omitempty"`
	// Container is the one that holds the process, proven with the pod.
	//record:when if assurance is pod
	Container *WhoContainer `json:"container,omitempty"`
	// Token says that a token was verified and is of the pod that holds the process.
	//record:when if true
	Token bool `json:"token,omitempty"`
	// TokenID is the verified token's own, by which the audit log of the API server names it too.
	//record:when if a token that was verified has one
	TokenID string `json:"token_id,omitempty"`
	// TokenState is why a token proves less than it says.
	//record:when if it does
	//record:values Token
	TokenState string `json:"token_state,omitempty"`
	// Host says that no container of the runtime holds the process.
	//record:when if true
	Host bool `json:"host,omitempty"`
	// Doubt is what could not be found out about the caller.
	//record:when if something could not
	Doubt string `json:"doubt,omitempty"`
}

// Doubts about callers that readers know.
const (
	DoubtSeveral = "several callers" // of a summary of refusals whose callers differ
)

// States of tokens.
const (
	TokenStale   = "stale"   // the API server was away; this is what it said last of this token of this process
	TokenUnbound = "unbound" // the caller's pod is not known, so that the token proves nothing
	TokenSeveral = "several" // of a summary of refusals whose tokens differ, or of which only some had one
)

// WhoContainer is the container that a caller runs in.
type WhoContainer struct {
	// ID is the container's id in the runtime.
	ID string `json:"id"`
	// Name is the container's name in its pod.
	Name string `json:"name,omitempty"`
	// Image is the image, as the pod names it.
	Image string `json:"image,omitempty"`
	// HostProcess says that it is a HostProcess container, whose programs run on the node itself.
	//record:when if true
	HostProcess bool `json:"host_process,omitempty"`
}

// WhoProcess is the caller's process.
type WhoProcess struct {
	// PID is its number, which the system gives again after its end.
	//record:max 4294967295
	PID uint32 `json:"pid"`
	// Start is when it was started, in UTC: with the number it names one process.
	//record:when if it is known
	Start time.Time `json:"start,omitzero"`
	// Exe is the path of its program.
	//record:when if it is known
	Exe string `json:"exe,omitempty"`
}

// WhoUser is the account of a process or of an API request.
type WhoUser struct {
	// SID is the security identifier.
	//record:when of processes
	SID string `json:"sid,omitempty"`
	// Name is the name, as the system or the API server gives it.
	//record:when if it is known
	Name string `json:"name,omitempty"`
	// Groups are the groups of the user.
	//record:when in admission decisions
	Groups []string `json:"groups,omitempty"`
}

// WhoPod is the pod that a request is about or comes from.
type WhoPod struct {
	// Namespace is the namespace of the pod; of an object that makes pods, the namespace they will be in.
	Namespace string `json:"ns,omitempty"`
	// Name is the name of the pod.
	//record:when if it has one: pods that are about to be made may not, and an object that makes pods is named in params
	Name string `json:"name,omitempty"`
	// UID is the uid of the pod in the cluster.
	//record:when of callers
	UID string `json:"uid,omitempty"`
	// ServiceAccount is the service account of the pod.
	//record:when if it is known
	ServiceAccount string `json:"sa,omitempty"`
}

// What is the request in the words of the newest API, with the served method beside them.
type What struct {
	// Pipe is the name of the pipe: csi-proxy-filesystem-v1.
	//record:when in requests and connections
	Pipe string `json:"pipe,omitempty"`
	// Group is the group of the API that it serves: filesystem.
	//record:when in requests and connections
	Group string `json:"group,omitempty"`
	// Version is the version of it: v1.
	//record:when in requests and connections
	Version string `json:"version,omitempty"`
	// Method is the operation by its newest name: CreateSymlink.
	//record:when in requests, if there is such a method
	Method string `json:"method,omitempty"`
	// FullMethod is the method as it was called: /v1alpha1.Filesystem/LinkPath. The caller chose it.
	//record:when in requests, unless they never named one
	FullMethod string `json:"full_method,omitempty"`
	// Verb says read or write; in admission decisions the operation of the API: CREATE, UPDATE.
	//record:when in requests whose method is known, and admission decisions
	Verb string `json:"verb,omitempty"`
	// Params is the request, by the names of the served version, with secrets withheld and long texts and lists cut; if the
	// record would be too long, a text in its place says how much was cut. In admission decisions it names the object, if that is no pod.
	//record:when in requests that were decoded, and in admission decisions about what is no pod
	Params json.RawMessage `json:"params,omitempty"`
	// Redacted are the fields of params that were withheld, whether or not they held something.
	Redacted []string `json:"redacted,omitempty"`
	// Targets are the things that the request would touch. In admission decisions they are named once each, at most 16, guarded pipes before all
	// others and what was refused before what was not.
	Targets []Target `json:"targets,omitempty"`
	// MoreTargets is how many other things the requests of a summary, or the object of an admission decision, named beside Targets. Above 256 the count stops.
	//record:when in summaries and admission decisions, if there are any
	MoreTargets int `json:"more_targets,omitempty"`
}

// Target is one thing that a request would touch.
type Target struct {
	// Kind says what it is. Of requests: disk, disk-name, path, portal, service, share, target or volume; of admission decisions what a
	// path leads to: pipe, path and others. In place of what was left out stands one of kind cut.
	Kind string `json:"kind"`
	// Value is its name, as the caller wrote it; a path on a host has single separators.
	Value string `json:"value"`
	// Canonical is its name as it was understood.
	//record:when in admission decisions
	Canonical string `json:"canonical,omitempty"`
}

// Decision is what was decided, and by which rule.
type Decision struct {
	// Effect is what was decided.
	Effect Effect `json:"effect"`
	// Reason is why, for people.
	Reason string `json:"reason"`
	// Rule names the rule that decided: of the access list by its name, of a policy by its code.
	//record:when if one did
	Rule string `json:"rule,omitempty"`
	// Policy is where that rule stands, or would if there were one.
	//record:when if rules were asked
	Policy *Policy `json:"policy,omitempty"`
	// Mode is Enforce, or LogOnly: then a denial was recorded and the call went on.
	//record:one-of Enforce LogOnly
	Mode string `json:"mode,omitempty"`
	// Permits are the dangerous steps that the rule allowed beside the operation.
	Permits []string `json:"permits,omitempty"`
}

// Policy names the policy that decided and its revision.
type Policy struct {
	// Name is the name of the policy: acl, bundle, roles or request.
	//record:when in requests
	Name string `json:"name,omitempty"`
	// Revision is the digest of what the policy says, or none.
	Revision string `json:"rev"`
	// Bundle is the revision of the signed bundle that the policy came in.
	//record:when if it came in one
	Bundle uint64 `json:"bundle,omitempty"`
}

// Outcome is how a request ended.
type Outcome struct {
	// Result says it in one word.
	//record:values Result
	Result string `json:"result"`
	// Code is the gRPC code by its name; of admission decisions, the HTTP status.
	//record:is code
	Code string `json:"code"`
	// Error is what the caller was told, or how a connection ended.
	//record:when if it did not end well
	Error string `json:"error,omitempty"`
	// Count is how many requests or connections the record stands for.
	//record:when if more than one
	Count uint64 `json:"count,omitempty"`
	// First is when the first of them ended; time is when the last one did.
	//record:when in summaries
	First time.Time `json:"first,omitzero"`
	// LatencyUS is how long it took since it arrived, in microseconds; of a summary, the last one's.
	LatencyUS int64 `json:"latency_us"`
	// CallerLeft says that the caller no longer waited for the answer: it was told of a deadline or nothing at all.
	//record:when if true
	CallerLeft bool `json:"caller_left,omitempty"`
}

// Corr ties records of different logs together.
type Corr struct {
	// Conn is the id of the connection that a request came on.
	//record:when in requests and connections
	Conn string `json:"conn,omitempty"`
	// AdmissionUID is the uid of the review that the API server asked for.
	//record:when in admission decisions
	AdmissionUID string `json:"admission_uid,omitempty"`
}

// Where is the place that wrote the record.
type Where struct {
	// Node is the name of the node.
	//record:when if it is known
	Node string `json:"node,omitempty"`
}
