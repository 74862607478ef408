package forward

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/Microsoft/go-winio"

	"github.com/pipeguard/pipeguard/internal/proxy/pipe"
)

// listen makes a pipe without the question that pipe.Listen asks, since that drops clients of its own process. One client
// that is held makes up for Wine, which lets the first one in to an instance that nobody serves.
func listen(name string, o pipe.Options) (net.Listener, error) {
	l, err := winio.ListenPipe(pipe.Address(name, o), &winio.PipeConfig{SecurityDescriptor: "D:P(A;;FA;;;WD)"})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	first, err := pipe.Dial(ctx, name, o)
	if err != nil { // Windows, where that instance cannot be opened
		return l, nil //nolint:nilerr // as it should be
	}
	return &holding{l, first}, nil
}

type holding struct {
	net.Listener
	first net.Conn
}

func (h *holding) Close() error { return errors.Join(h.Listener.Close(), h.first.Close()) }
