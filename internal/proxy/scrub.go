package proxy

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/internal/proxy/secret"
)

// redact has the call carried out, and takes the secrets of a request out of the error of whoever carries it out, before anybody records, logs or answers
// it. It stands next to the operation: nothing above was given a secret, and taking words out of texts that know none would
// tell which words are one.
//
// The caller is told the same. It knows its secret, but it logs what it is told, and others read that. The code stays, and a
// text without a secret in it stays word for word; details of a status, which nobody here can read, do not.
func (r *request) redact(ctx context.Context, handle apiserver.Handler) (proto.Message, error) {
	values := apiserver.Secrets(r.call) // now: what is behind may change the request
	resp, err := handle(ctx, r.call)
	if err == nil || len(values) == 0 {
		return resp, err
	}
	st := statusOf(err)
	code := st.Code()
	if code == codes.OK { // with an error beside it, which is not to be lost
		code = codes.Internal
	}
	return nil, status.Error(code, secret.New(values...).Scrub(st.Message(), string(r.event.What.Params)))
}
