package apiserver

import (
	"context"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/pipeguard/pipeguard/internal/core/safepath"
)

// Operation is a method of the newest version of a group, the hub to which every served version is converted.
type Operation struct {
	Group    string // "filesystem"
	Name     string // "Mkdir"
	ReadOnly bool   // the operation changes nothing on the host
	IsOpen   bool   // no field of its requests is a secret, in any version
}

// Call is one request in the words of the hub, with the words in which it was served beside them.
type Call struct {
	Operation  *Operation
	Version    string        // served version, "v1alpha1"
	Method     string        // served method, "LinkPath"
	FullMethod string        // "/v1alpha1.Filesystem/LinkPath"
	Request    proto.Message // newest request message
	Served     proto.Message // request as it was served, but for the spelling of its paths; not to be changed
	Permits    Permits       // set by whoever decides; the zero value permits nothing
	Caller     string        // who calls, in words for an administrator; set by whoever decides
}

// Permits are dangerous steps of operations, which the right to the operation does not include.
type Permits struct {
	Reformat    bool // format a volume that has a file system
	SystemDisk  bool // change a disk or volume that the host itself runs from
	NodeAccount bool // map a share with the account of the host itself
	// Services are services that the caller may stop besides the one that the call names, because they depend on it.
	Services []string
}

// NamesService says whether a service is among Services, by its short name. Case does not distinguish services.
func (p Permits) NamesService(name string) bool {
	return slices.ContainsFunc(p.Services, func(s string) bool { return safepath.EqualFold(s, name) })
}

// Handler carries out a call and returns the newest response message.
type Handler func(ctx context.Context, call *Call) (proto.Message, error)

// OwnError is an error of a Handler whose text is this program's own. The text of any other error may be that of a program that was
// given the request.
type OwnError struct{ status *status.Status }

// NewOwnError takes a text in which no other program has had a say.
func NewOwnError(code codes.Code, text string) error { return &OwnError{status.New(code, text)} }

// Error implements error.
func (e *OwnError) Error() string { return e.status.String() }

// GRPCStatus is what gRPC answers.
func (e *OwnError) GRPCStatus() *status.Status { return e.status }

// Interceptor stands before a Handler: it may refuse the call, or pass it to next.
type Interceptor func(ctx context.Context, call *Call, next Handler) (proto.Message, error)
