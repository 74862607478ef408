package handler

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pipeguard/pipeguard/internal/core/safepath"
)

func TestErrorsOfHostsGetTheirCodes(t *testing.T) {
	tests := []struct {
		err  error
		want codes.Code
	}{
		{errors.New("anything"), codes.Internal},
		{&fs.PathError{Op: "mkdir", Path: "p", Err: fs.ErrNotExist}, codes.NotFound},
		{fmt.Errorf("x: %w", fs.ErrExist), codes.AlreadyExists},
		{fmt.Errorf("x: %w", fs.ErrPermission), codes.PermissionDenied},
		{fs.ErrInvalid, codes.InvalidArgument},
		{invalid("x"), codes.InvalidArgument},
		{&safepath.Error{Path: "p", Reason: "r"}, codes.InvalidArgument},
		{fmt.Errorf("x: %w", ErrPrecondition), codes.FailedPrecondition},
		{fmt.Errorf("x: %w", errors.ErrUnsupported), codes.Unimplemented},
		{fmt.Errorf("x: %w", ErrUnavailable), codes.Unavailable},
		{NotFound("x: not found"), codes.NotFound},
		{fmt.Errorf("x: %w", context.Canceled), codes.Canceled},
		{fmt.Errorf("x: %w", context.DeadlineExceeded), codes.DeadlineExceeded},
		{status.Error(codes.Unavailable, "x"), codes.Unavailable},
		{fmt.Errorf("x: %w", status.Error(codes.Aborted, "y")), codes.Aborted},
	}
	for _, tt := range tests {
		got := status.Convert(asStatus(tt.err))
		if got.Code() != tt.want {
			t.Errorf("%v has code %v, want %v", tt.err, got.Code(), tt.want)
		}
		_, has := status.FromError(tt.err)
		if !has && got.Message() != tt.err.Error() {
			t.Errorf("%v became %q", tt.err, got.Message())
		}
		if kind := fmt.Sprintf("%T", asStatus(tt.err)); (kind == "*apiserver.OwnError") == has {
			t.Errorf("%v became a %s", tt.err, kind)
		}
	}
}
