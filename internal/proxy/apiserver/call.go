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

// Call is one request converted to the hub, with the request as it was served.
type Call struct {
	Operation  *Operation
	Version    string        // served version, "v1alpha1"
	Method     string        // served method, "LinkPath"
	FullMethod string        // "/v1alpha1.Filesystem/LinkPath"
	Request    proto.Message // newest request message
	Served     proto.Message // request as it was served, but for the spelling of its paths; not to be changed
	Permits    Permits       // set by the access decision; the zero value permits nothing
	Caller     string        // the caller as an administrator reads it; set by the access decision
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

// NewOwnError takes a text of this program alone.
func NewOwnError(code codes.Code, text string) error { return &OwnError{status.New(code, text)} }

// Error implements error.
func (e *OwnError) Error() string { return e.status.String() }

// GRPCStatus is what gRPC answers.
func (e *OwnError) GRPCStatus() *status.Status { return e.status }
