package proxy

import (
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// errSpent is the end of strangers that have used up their budget. It is the same for all of them, so that one summary counts them.
var errSpent = status.Error(codes.ResourceExhausted, "the caller was refused too often, and no rule for this pipe names it")

// lingering is how long an answer has to reach a caller whose connection is being ended.
const lingering = 200 * time.Millisecond

// expel ends the connection of a stranger, which is told so once. Callers that a rule names keep theirs: other calls on it may be allowed.
func (c *conn) expel() bool {
	if !c.isStranger() {
		return false
	}
	if c.expelled.CompareAndSwap(false, true) {
		c.because(audit.ResultRejected, status.Convert(errSpent).Message())
		time.AfterFunc(lingering, func() { _ = c.Close() }) // it is given up either way; by the end of a stop gRPC has closed it
	}
	return true
}

// isWelcome returns an error for a stranger that has used up its budget: it is not worth a connection.
func (c *conn) isWelcome() error {
	if c.isStranger() && c.pipe.audit.refusals.isSpent(c.principal()) {
		c.pipe.arrivals.turnAway(client{c.pipe.name, c.at.PID})
		return errSpent
	}
	return nil
}
