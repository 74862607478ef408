package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/pipeguard/pipeguard/internal/core/caller"
)

// scene is what one caller does on one connection.
type scene struct {
	at    string // time of the day
	list  string // the access list that is put in force before; empty leaves it
	away  bool   // the API server goes away before
	who   caller.Caller
	pipe  string // as in disk-v1
	token bool   // with the token of the caller's pod
	calls []call // none: the connection is closed again
}

// call is a method with its request, and the answer that the story wants.
type call struct {
	method  string
	request object
	want    codes.Code
}

// tell plays scenes one after the other.
func (n *node) tell(ctx context.Context, scenes []scene) error {
	for _, s := range scenes {
		if err := n.scene(ctx, s); err != nil {
			return fmt.Errorf("at %s on %s: %w", s.at, s.pipe, err)
		}
	}
	return nil
}

func (n *node) scene(ctx context.Context, s scene) error {
	if err := n.clock.set(s.at); err != nil {
		return err
	}
	if s.away {
		n.cluster.goAway()
	}
	if s.list != "" {
		if err := n.use(ctx, s.list); err != nil {
			return err
		}
	}
	before := n.log.connections()
	if err := n.visit(ctx, s); err != nil {
		return err
	}
	return n.log.await(ctx, before+1)
}

// visit opens a connection, makes the calls, and leaves.
func (n *node) visit(ctx context.Context, s scene) (err error) {
	api := n.apis[s.pipe]
	if api == nil {
		return fmt.Errorf("there is no such pipe")
	}
	raw, err := n.pipes.Dial(ctx, api.GroupVersion().Pipe(), s.who)
	if err != nil || len(s.calls) == 0 {
		if raw != nil {
			err = raw.Close()
		}
		return err
	}
	conn, err := grpc.NewClient("passthrough:///pipe", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return raw, nil }))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // it has done what it was for
	if s.token {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+n.cluster.pod)
	}
	for _, c := range s.calls {
		if err := n.call(ctx, conn, s.pipe, c); err != nil {
			return fmt.Errorf("%s: %w", c.method, err)
		}
	}
	return nil
}

func (n *node) call(ctx context.Context, conn *grpc.ClientConn, pipe string, c call) error {
	api := n.apis[pipe]
	method, ok := api.Method(c.method)
	if !ok { // a caller may ask for what there is not
		known := api.Methods()[0]
		service := strings.TrimSuffix(known.FullMethod, known.Name)
		return c.compare(conn.Invoke(ctx, service+c.method, &emptypb.Empty{}, &emptypb.Empty{}))
	}
	request, response := method.NewRequest(), method.NewResponse()
	if c.request == nil {
		return c.compare(conn.Invoke(ctx, method.FullMethod, request, response))
	}
	doc, err := json.Marshal(c.request)
	if err == nil {
		err = protojson.Unmarshal(doc, request)
	}
	if err != nil {
		return err
	}
	return c.compare(conn.Invoke(ctx, method.FullMethod, request, response))
}

func (c call) compare(err error) error {
	if got := status.Code(err); got != c.want {
		return fmt.Errorf("the answer is %s, and the story wants %s: %s", got, c.want, status.Convert(err).Message())
	}
	return nil
}
