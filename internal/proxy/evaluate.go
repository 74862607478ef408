package proxy

import (
	"context"
	"errors"
	"strconv"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/core/gate"
	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/proxy/requestpolicy"
)

// EvaluatePolicy implements gate.RequestPolicy: it asks the request policy. On a pipe in mode LogOnly its denial is recorded and not enforced.
func (r *request) EvaluatePolicy(ctx context.Context) *gate.Refusal {
	p := r.pipe()
	d := r.rules.RequestPolicy.Decide(ctx, r.call, p.circumstances(r))
	if d.Allowed() {
		return nil
	}
	d.Record(r.event.Decision)
	r.event.Decision.Policy.Bundle = r.rules.Policy.Bundle
	if d.Err != nil && d.Rule != requestpolicy.CodeCanceled { // no rule refused: something does not work
		text := errors.New(cut(d.Err.Error(), maxFaultText))
		r.fault = note{zap.ErrorLevel, "the request policy gave no decision", []zap.Field{zap.String(logkeys.Code, d.Rule), zap.Error(text)}}
	}
	p.metrics.judged.WithLabelValues(p.name, d.Label(), r.event.Decision.Mode).Inc()
	return &gate.Refusal{Reason: d.Rule + ": " + d.Reason + " (" + revisionOf(r.event.Decision.Policy) + ")", MayChange: d.MayChange()}
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

// circumstances are the input of the request policy beside the call itself.
func (p *pipe) circumstances(r *request) *requestpolicy.Circumstances {
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
