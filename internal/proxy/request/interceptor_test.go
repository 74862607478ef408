package request

import (
	"context"
	"errors"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
)

func TestInterceptorLetsPassWhatIsAllowedAndRecordedAndNothingElse(t *testing.T) {
	errRefused := errors.New("refused")
	known := func(context.Context, *apiserver.Call) (*Subject, error) { return driver(), nil }
	heard := func(context.Context, *apiserver.Call, Decision) error { return nil }
	yes := func(context.Context, *apiserver.Call) bool { return true }
	no := func(context.Context, *apiserver.Call) bool { return false }
	for name, c := range map[string]struct {
		call  *apiserver.Call
		hooks Hooks
		runs  bool
		rule  string
	}{
		"an allowed call":                   {mkdir(), Hooks{Subject: known, Decided: heard}, true, ""},
		"a denial":                          {stop(), Hooks{Subject: known, Decided: heard}, false, "PN001"},
		"a denial that is enforced":         {stop(), Hooks{Subject: known, Decided: heard, LogOnly: no}, false, "PN001"},
		"a denial that is only logged":      {stop(), Hooks{Subject: known, Decided: heard, LogOnly: yes}, true, "PN001"},
		"a caller that cannot be told":      {mkdir(), Hooks{Subject: func(context.Context, *apiserver.Call) (*Subject, error) { return nil, errRefused }, Decided: heard}, false, CodeInput},
		"no caller":                         {mkdir(), Hooks{Subject: func(context.Context, *apiserver.Call) (*Subject, error) { return nil, nil }, Decided: heard}, false, CodeInput},
		"an allowed call that nobody hears": {mkdir(), Hooks{Subject: known, Decided: func(context.Context, *apiserver.Call, Decision) error { return errRefused }}, false, ""},
		"a logged denial that nobody hears": {stop(), Hooks{Subject: known, Decided: func(context.Context, *apiserver.Call, Decision) error { return errRefused }, LogOnly: yes}, false, "PN001"},
	} {
		t.Run(name, func(t *testing.T) {
			ran, decided := false, Decision{}
			inner := c.hooks.Decided
			c.hooks.Decided = func(ctx context.Context, call *apiserver.Call, d Decision) error {
				if ran {
					t.Error("it was heard after the operation")
				}
				decided = d
				return inner(ctx, call, d)
			}
			_, err := evaluator(t, policy.Options{}, nil).Interceptor(c.hooks)(t.Context(), c.call, func(context.Context, *apiserver.Call) (proto.Message, error) {
				ran = true
				return &emptypb.Empty{}, nil
			})
			if ran != c.runs || (err == nil) != c.runs || decided.Rule != c.rule {
				t.Errorf("ran %t, %v, decided %+v", ran, err, decided)
			}
			if err != nil && !errors.Is(err, errRefused) && status.Code(err) != codes.PermissionDenied {
				t.Errorf("the caller is told %v", err)
			}
		})
	}
}
