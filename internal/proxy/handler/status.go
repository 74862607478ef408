package handler

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pipeguard/pipeguard/internal/core/safepath"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
)

// ErrPrecondition is wrapped by a host when it refuses because of the state it is in: a directory shows another
// volume, running services depend on the one to stop. Trying again helps once that state has changed.
var ErrPrecondition = errors.New("the host is not in a state for this")

// ErrUnavailable is wrapped by a host when another machine or a part of Windows that it needs does not answer.
// The operation was not begun, and trying again later may help.
var ErrUnavailable = errors.New("the host cannot reach what it needs")

// InvalidError says what is wrong with a request.
type InvalidError struct{ text string }

// Error returns the text alone: clients compare the beginnings of error texts.
func (e *InvalidError) Error() string { return e.text }

func invalid(format string, args ...any) error { return &InvalidError{fmt.Sprintf(format, args...)} }

// NotFound is an error of exactly that text which is fs.ErrNotExist. It is for texts that clients know.
func NotFound(format string, args ...any) error { return &missingError{fmt.Sprintf(format, args...)} }

type missingError struct{ text string }

func (e *missingError) Error() string { return e.text }

func (*missingError) Is(target error) bool { return target == fs.ErrNotExist }

// asStatus gives an error of a host its gRPC code. The old servers answered Unknown to everything; the text is theirs. Errors of
// hosts contain only this program's own texts ([Secret]); a status that an error brings along may not.
func asStatus(err error) error {
	if _, ok := status.FromError(err); ok {
		return err
	}
	return apiserver.NewOwnError(codeOf(err), err.Error())
}

func codeOf(err error) codes.Code {
	var badRequest *InvalidError
	var badPath *safepath.Error
	switch {
	case errors.As(err, &badRequest), errors.As(err, &badPath), errors.Is(err, fs.ErrInvalid):
		return codes.InvalidArgument
	case errors.Is(err, context.Canceled):
		return codes.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return codes.DeadlineExceeded
	case errors.Is(err, fs.ErrNotExist):
		return codes.NotFound
	case errors.Is(err, fs.ErrExist):
		return codes.AlreadyExists
	case errors.Is(err, fs.ErrPermission):
		return codes.PermissionDenied
	case errors.Is(err, ErrPrecondition):
		return codes.FailedPrecondition
	case errors.Is(err, ErrUnavailable):
		return codes.Unavailable
	case errors.Is(err, errors.ErrUnsupported):
		return codes.Unimplemented
	}
	return codes.Internal
}
