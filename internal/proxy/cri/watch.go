package cri

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/pipeguard/pipeguard/internal/periodic"
)

// settle is how long news are gathered before the runtime is asked what they come to: containers start and end in
// groups, and each tells of itself several times.
const settle = 100 * time.Millisecond

// Run keeps the list of containers up to date until ctx ends. The content of events is not used, only that there was one: a list
// is always complete, and cannot have been missed in part.
func (c *Client) Run(ctx context.Context) error {
	for {
		wait := reconnect
		if err := c.watch(ctx); status.Code(err) == codes.Unimplemented {
			wait = c.options.Poll // there is nothing but to ask
		}
		if !periodic.Sleep(ctx, wait) {
			return nil
		}
	}
}

// watch returns when the stream of events ends.
func (c *Client) watch(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	news, ended := make(chan struct{}, 1), make(chan error, 1)
	c.asking.Go(func() { ended <- c.receive(ctx, news) })
	var err error
	poll := time.NewTicker(c.options.Poll)
	defer poll.Stop()
	for err == nil {
		_, _ = c.Refresh(ctx) // a failure is logged, and the next question is not far
		select {
		case <-news:
			periodic.Sleep(ctx, settle)
		case <-poll.C:
		case err = <-ended:
		}
	}
	cancel()
	c.lists.breaks.Add(1)
	return err
}

// receive passes on that there are news, until the stream ends.
func (c *Client) receive(ctx context.Context, news chan<- struct{}) error {
	stream, err := c.runtime.GetContainerEvents(ctx, &runtimeapi.GetEventsRequest{})
	if err != nil {
		return err
	}
	for {
		if _, err := stream.Recv(); err != nil {
			return err
		}
		c.lists.events.Add(1)
		periodic.Signal(news)
	}
}
