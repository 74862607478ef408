package proxy

import (
	"context"
	"errors"
	"strconv"

	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/internal/proxy/requestpolicy"
)

// judged asks the request policy about a call that the access list has allowed. On a pipe in mode LogOnly its denial is
// recorded and not enforced; a call that the list has denied there is denied already, and is not asked about.
func (p *pipe) judged(ctx context.Context, call *apiserver.Call, next apiserver.Handler) (proto.Message, error) {
	r := requestFrom(ctx)
	if r.rules.Judge == nil || access.Effect(r.event.Decision.Effect) != access.Allow {
		return next(ctx, call)
	}
	d := r.rules.Judge.Decide(ctx, call, p.subject(r))
	if d.Allowed() {
		return next(ctx, call)
	}
	d.Record(r.event.Decision)
	r.event.Decision.Policy.Bundle = r.rules.Policy.Bundle
	if d.Err != nil && d.Rule != requestpolicy.CodeCanceled { // no rule refused: something does not work
		text := errors.New(cut(d.Err.Error(), maxFaultText))
		r.fault = note{zap.ErrorLevel, "the request policy gave no decision", []zap.Field{zap.String(logkeys.Code, d.Rule), zap.Error(text)}}
	}
	p.metrics.judged.WithLabelValues(p.name, d.Label(), r.event.Decision.Mode).Inc()
	reason := d.Rule + ": " + d.Reason + " (" + revisionOf(r.event.Decision.Policy) + ")"
	if access.Mode(r.event.Decision.Mode) != access.LogOnly {
		err := p.deny(r, call, reason)
		if d.MayChange() { // drivers ask again, and do not after PermissionDenied
			err = status.Error(codes.Unavailable, status.Convert(err).Message())
		}
		return nil, err
	}
	r.noteDenial("call would be denied", reason)
	return next(ctx, call)
}

// revisionOf names the revision of a request policy as refusals of the access list name theirs.
func revisionOf(p *audit.Policy) string {
	const most = len("sha256:") + 12
	text := "request policy " + p.Revision[:min(len(p.Revision), most)]
	if p.Bundle != 0 {
		text += ", revision " + strconv.FormatUint(p.Bundle, 10)
	}
	return text
}

// subject is what the request policy is told of a call beside the call itself.
func (p *pipe) subject(r *request) *requestpolicy.Circumstances {
	s := &requestpolicy.Circumstances{Shown: r.stream.conn.shown(r.hasToken), Sender: r.stream.conn.principal().String(), Named: r.isNamed, Pipe: p.name, Now: r.now}
	if p.where != nil {
		s.Node = p.where.Node
	}
	return s
}

// shown is the caller in the form that policies are shown, made once for a connection, and once more if it sends a token.
func (c *conn) shown(hasToken bool) *requestpolicy.Shown {
	i := 0
	if hasToken {
		i = 1
	}
	if made := c.caller[i].Load(); made != nil {
		return made
	}
	who := c.identity()
	who.Token = hasToken
	made := requestpolicy.Show(who)
	c.caller[i].Store(made)
	return made
}
