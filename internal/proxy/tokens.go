package proxy

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/proxy/token"
)

// looksAtTokens says whether a token can add to what is known of a caller on this pipe.
func (p *pipe) looksAtTokens() bool { return p.tokens != nil && p.tokens.Mode() != token.Off }

// Authenticate implements gate.Session: it checks the caller's token and takes it out of the call: the server behind the proxy has no use for it.
func (r *request) Authenticate(ctx context.Context) (context.Context, error) {
	p := r.pipe()
	if !p.looksAtTokens() {
		return ctx, nil
	}
	md, _ := metadata.FromIncomingContext(ctx)
	id, result, err := p.tokens.Check(ctx, md, r.stream.conn.facts())
	if err != nil {
		code := token.CodeOf(err)
		r.result = audit.ResultRejected
		if code == codes.PermissionDenied || code == codes.Unauthenticated {
			r.result = audit.ResultDenied
		}
		r.event.Decision = &audit.Decision{Effect: audit.EffectDeny, Reason: "token: " + err.Error(), Mode: string(access.Enforce)}
		return nil, status.Errorf(code, "pipe %s: %v (audit id %s)", p.name, err, r.stream.id)
	}
	r.hasToken, r.token = id.PodUID != "", id
	r.event.Who = withToken(r.event.Who, r.hasToken, result)
	return metadata.NewIncomingContext(ctx, p.tokens.Strip(md)), nil
}

// withToken is how records name a caller who has sent a token. Who is shared by the records of the connection, and stays.
func withToken(who *audit.Who, valid bool, result token.Result) *audit.Who {
	if !result.Present {
		return who
	}
	w := *who
	w.Token, w.TokenID = valid, result.ID
	switch {
	case result.Unbound:
		w.TokenState = audit.TokenUnbound
	case result.Stale:
		w.TokenState = audit.TokenStale
	}
	return &w
}

// caller is the caller of a request, with its token.
func (r *request) caller() caller.Caller {
	c := r.stream.conn.identity()
	c.Token = r.hasToken
	return c
}

// facts are what the kernel and the runtime say of a caller, for its token to agree with.
func (c *conn) facts() token.Facts {
	return token.Facts{Caller: c.identity(), Stranger: c.isStranger(), Alive: c.alive}
}
