package token

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
)

// Reason says in one word why a call is refused. It is a label of metrics.
type Reason string

// The reasons, in the order in which they are looked for.
const (
	Missing      Reason = "missing"      // the pipe requires a token and none came
	Malformed    Reason = "malformed"    // it is no service-account token, or several came
	WrongIssuer  Reason = "issuer"       // another cluster made it
	WrongTarget  Reason = "audience"     // it was made for another server than this proxy
	WrongTime    Reason = "time"         // expired, not valid yet, or valid for too long
	Unbound      Reason = "unbound"      // the caller's pod is not known, so the token could belong to another pod
	WrongPod     Reason = "pod"          // it was made for another pod
	WrongNode    Reason = "node"         // it was made for a pod of another node
	WrongAccount Reason = "account"      // it was made for another service account than the pod's
	Unproven     Reason = "signature"    // no published key signed it
	Rejected     Reason = "rejected"     // the API server does not know it, or knows it as something else
	Ended        Reason = "ended"        // the caller's process has ended
	Busy         Reason = "busy"         // too many questions are open already
	Unavailable  Reason = "unavailable"  // the API server could not be asked
	Forbidden    Reason = "forbidden"    // the cluster's RBAC does not allow it
	Unconfigured Reason = "unconfigured" // this proxy has no keys and no API server
)

// Refusal is why a token does not count. Its text tells the caller what to put right, and holds no part of the token
// but the names in it.
type Refusal struct {
	Reason Reason
	text   string
	cause  error
}

// Error implements error.
func (r *Refusal) Error() string {
	if r.cause != nil {
		return "token refused: " + r.text + ": " + r.cause.Error()
	}
	return "token refused: " + r.text
}

// Unwrap returns the error of the API server, or nil.
func (r *Refusal) Unwrap() error { return r.cause }

// ReasonOf returns the reason of a refusal, and Unavailable for every other error.
func ReasonOf(err error) Reason {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r.Reason
	}
	return Unavailable
}

// CodeOf returns the gRPC code that tells a caller of an error of this package what to do: mount another token, ask for a role,
// or try again.
func CodeOf(err error) codes.Code {
	switch ReasonOf(err) {
	case Unavailable, Busy:
		return codes.Unavailable
	case Forbidden:
		return codes.PermissionDenied
	}
	return codes.Unauthenticated
}

func refuse(reason Reason, format string, args ...any) *Refusal {
	return &Refusal{Reason: reason, text: fmt.Sprintf(format, args...)}
}

func unavailable(text string, cause error) *Refusal {
	return &Refusal{Reason: Unavailable, text: text, cause: cause}
}
