package pipe

import (
	"context"
	"time"

	"github.com/pipeguard/pipeguard/internal/proxy/peer"
)

// dropWithin is how long a question waits to be dropped by the listener that it reached. It is over sooner as a rule: a
// listener that takes longer counts it as a connection of this process.
const dropWithin = time.Second

// serverPID is the process that serves the pipe.
func serverPID(ctx context.Context, name string, o Options) (uint32, error) {
	conn, err := Dial(ctx, name, o)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }() // nothing was written that could be lost
	return peer.ServerPID(conn)
}
