package proxy

import (
	"context"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
)

// withheld stands for a text that may repeat a secret.
const withheld = "the host's answer is withheld, since it may repeat a secret"

// redact has the call carried out. If its request has a secret, only an apiserver.OwnError keeps its text, because another program
// may repeat the secret in a form that no search would find. Of any other error, only the code is recorded, logged and answered.
//
// The caller is told the same. It knows its secret, but it logs what it is told, and others read that.
func (r *request) redact(ctx context.Context, handle apiserver.Handler) (proto.Message, error) {
	secrets := apiserver.Secrets(r.call) // now: the handler may change the request
	resp, err := handle(ctx, r.call)
	if err == nil || len(secrets) == 0 {
		return resp, err
	}
	st := statusOf(err)
	_, isOwn := err.(*apiserver.OwnError) //nolint:errorlint // the text around a wrapped one is not known
	if isOwn && !repeats(st.Message(), secrets) {
		return nil, err
	}
	code := st.Code()
	if code == codes.OK || code > codes.Unauthenticated { // an error beside a success, or a number that means nothing
		code = codes.Internal
	}
	return nil, status.Error(code, withheld)
}

// repeats says whether a secret stands in a text as it is. No text of this program should have one; but it names what the request
// asks for, which may be the same words.
func repeats(text string, secrets []string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(secrets, func(s string) bool { return strings.Contains(text, strings.ToLower(s)) })
}
