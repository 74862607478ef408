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
	TypeLog        Type = "log"        // the log itself: opened, closed
)

// Stage says at which point of a request's life a record was written.
type Stage string

// Stages of records. RequestReceived is the intent, written before the operation runs;
// each of the others ends what it belongs to.
const (
	StageRequestReceived  Stage = "RequestReceived"
	StageResponseComplete Stage = "ResponseComplete"
	StagePanic            Stage = "Panic"

	// StageConnectionClosed is the one record of a connection.
	StageConnectionClosed Stage = "ConnectionClosed"
	// StageLogOpen is the first record of a session, StageLogClose the last one of a session that was closed in order.
	StageLogOpen  Stage = "LogOpen"
	StageLogClose Stage = "LogClose"
)

// Results of outcomes.
const (
	ResultOK       = "ok"
	ResultError    = "error"    // the operation ran, or was about to, and ended with an error
	ResultDenied   = "denied"   // refused by a rule
	ResultRejected = "rejected" // refused before any rule was asked: malformed, unknown, too large, too many
	ResultPanic    = "panic"    // the server's own fault
	ResultIdle     = "idle"     // a connection that never carried a request, as stock clients leave one behind
)

// Effect is what was decided.
type Effect string

// Effects of decisions.
const (
	EffectAllow Effect = "allow"
	EffectDeny  Effect = "deny"
)

// Event is one record: one line of JSON with the fields in this order.
type Event struct {
	V         int       `json:"v"`
	Seq       uint64    `json:"seq"`                  // set by the writer: 1, 2, 3 … without gaps within a session
	Type      Type      `json:"type"`                 //
	Stage     Stage     `json:"stage"`                //
	Time      time.Time `json:"time"`                 // UTC
	Session   string    `json:"session"`              // set by the writer: one run of one process
	ID        string    `json:"id"`                   // one request; its records share it
	IntentSeq uint64    `json:"intent_seq,omitempty"` // in a terminal record, seq of the intent
	Again     bool      `json:"again,omitempty"`      // written a second time after a failed write; the first copy may be there too
	Log       *Log      `json:"log,omitempty"`        // in a LogOpen record, what was found in the file
	Who       *Who      `json:"who,omitempty"`
	What      *What     `json:"what,omitempty"`
	Decision  *Decision `json:"decision,omitempty"`
	Outcome   *Outcome  `json:"outcome,omitempty"`
	Corr      *Corr     `json:"corr,omitempty"`
	Where     *Where    `json:"where,omitempty"`
}

// Log is what the writer of a new session found at the end of its file. A reader compares it
// with what it has read so far: records cut off between two sessions show as a difference.
type Log struct {
	PreviousSession string `json:"previous_session,omitempty"`
	PreviousSeq     uint64 `json:"previous_seq,omitempty"`
	TornBytes       int    `json:"torn_bytes,omitempty"` // length of a last line without its newline
}

// Who is the caller, as far as its identity was proven.
type Who struct {
	Assurance string      `json:"assurance"`
	Process   *WhoProcess `json:"process,omitempty"`
	User      *WhoUser    `json:"user,omitempty"`
	Pod       *WhoPod     `json:"pod,omitempty"`
	// Container is the one that holds the process, proven with the pod.
	Container *WhoContainer `json:"container,omitempty"`
	// Token says that a token was verified and is of the pod that holds the process.
	Token bool `json:"token,omitempty"`
	// TokenID is the verified token's own, by which the audit log of the API server names it too.
	TokenID string `json:"token_id,omitempty"`
	// TokenState is empty, or one of TokenStale and TokenUnbound.
	TokenState string `json:"token_state,omitempty"`
	// Host says that no container of the runtime holds the process.
	Host bool `json:"host,omitempty"`
	// Doubt is what could not be found out about the caller.
	Doubt string `json:"doubt,omitempty"`
}

// States of tokens.
const (
	TokenStale   = "stale"   // the API server was away; this is what it said last of this token of this process
	TokenUnbound = "unbound" // the caller's pod is not known, so that the token proves nothing
)

// WhoContainer is the container that a caller runs in.
type WhoContainer struct {
	ID          string `json:"id"`
	Name        string `json:"name,omitempty"`
	Image       string `json:"image,omitempty"`
	HostProcess bool   `json:"host_process,omitempty"`
}

// WhoProcess is the caller's process.
type WhoProcess struct {
	PID   uint32    `json:"pid"`
	Start time.Time `json:"start,omitzero"`
	Exe   string    `json:"exe,omitempty"`
}

// WhoUser is the account of a process or of an API request.
type WhoUser struct {
	SID    string   `json:"sid,omitempty"`
	Name   string   `json:"name,omitempty"`
	Groups []string `json:"groups,omitempty"`
}

// WhoPod is the pod that a request is about or comes from.
type WhoPod struct {
	Namespace      string `json:"ns,omitempty"`
	Name           string `json:"name,omitempty"`
	UID            string `json:"uid,omitempty"`
	ServiceAccount string `json:"sa,omitempty"`
}

// What is the request in the words of the newest API, with the served method beside them.
type What struct {
	Pipe       string          `json:"pipe,omitempty"`        // csi-proxy-filesystem-v1
	Group      string          `json:"group,omitempty"`       // filesystem
	Version    string          `json:"version,omitempty"`     // v1, as served
	Method     string          `json:"method,omitempty"`      // hub operation: CreateSymlink
	FullMethod string          `json:"full_method,omitempty"` // as served: /v1alpha1.Filesystem/LinkPath
	Verb       string          `json:"verb,omitempty"`        // read or write; for admissions CREATE or UPDATE
	Params     json.RawMessage `json:"params,omitempty"`      // redacted request
	Redacted   []string        `json:"redacted,omitempty"`    // fields of params that were withheld
	Targets    []Target        `json:"targets,omitempty"`
}

// Target is one thing that a request would touch.
type Target struct {
	Kind      string `json:"kind"` // path, volume, service, pipe
	Value     string `json:"value"`
	Canonical string `json:"canonical,omitempty"`
}

// Decision is what was decided, and by which rule.
type Decision struct {
	Effect Effect  `json:"effect"`
	Reason string  `json:"reason"`
	Rule   string  `json:"rule,omitempty"`
	Policy *Policy `json:"policy,omitempty"`
	Mode   string  `json:"mode,omitempty"` // Enforce or LogOnly
	// Permits are the dangerous steps that the rule allowed beside the operation.
	Permits []string `json:"permits,omitempty"`
}

// Policy names the policy that decided and its revision.
type Policy struct {
	Name     string `json:"name,omitempty"`
	Revision string `json:"rev"`
	// Bundle is the revision of the signed bundle that the policy came in, 0 if it came in none.
	Bundle uint64 `json:"bundle,omitempty"`
}

// Outcome is how a request ended.
type Outcome struct {
	Result    string `json:"result"`          // one of the Result constants
	Code      string `json:"code"`            // gRPC code by name, or an HTTP status
	Error     string `json:"error,omitempty"` //
	LatencyUS int64  `json:"latency_us"`      // microseconds since arrival
	// CallerLeft says that nobody waited for the answer any more: the caller was told of a deadline or nothing at all.
	CallerLeft bool `json:"caller_left,omitempty"`
}

// Corr ties records of different logs together.
type Corr struct {
	Conn         string `json:"conn,omitempty"`
	AdmissionUID string `json:"admission_uid,omitempty"`
}

// Where is the place that wrote the record.
type Where struct {
	Node string `json:"node,omitempty"`
}
