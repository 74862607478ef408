package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/internal/atmost"
	"github.com/pipeguard/pipeguard/internal/proxy/pipe"
)

type callOptions struct {
	pipe      string
	socketDir string
	timeout   time.Duration
	isList    bool
}

func newCall() *cobra.Command {
	var o callOptions
	cmd := &cobra.Command{
		Use:   "call --pipe NAME METHOD JSON",
		Short: "Call one method of a running proxy, as a CSI driver would",
		Long: `Sends one request to a pipe and prints the response as JSON, with every field.

NAME is csi-proxy-filesystem-v1 or, shorter, filesystem-v1. METHOD is the name in that version of the API. JSON is the
request in the JSON form of protocol buffers (names as in the .proto file or in lowerCamelCase); - reads it from
standard input: do so in Windows PowerShell 5.1, which takes the quotes out of arguments. The proxy judges this program
as it judges any other caller.

Exit code: 0 and the response on standard output; 1 and the gRPC code and message on standard error if the call was
refused, failed or reached no proxy; 2 if pipe, method or JSON are wrong, in which case nothing was sent.`,
		Example: `  pipeguard call --list --pipe filesystem-v1
  pipeguard call --pipe filesystem-v1 PathExists '{"path": "C:\\var\\lib\\kubelet\\plugins"}'
  # in PowerShell
  '{"path": "C:\\var\\lib\\kubelet\\plugins"}' | pipeguard call --pipe filesystem-v1 PathExists -`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.isList {
				return callList(cmd, args, o)
			}
			return call(cmd, args, o)
		},
	}
	cli.Text(cmd, &o.pipe, "pipe", "", "pipe to call, csi-proxy-filesystem-v1 or filesystem-v1")
	cli.Text(cmd, &o.socketDir, "socket-dir", "", "directory of the proxy's unix sockets; needed outside Windows, not used there")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 30*time.Second, "how long to wait for the connection and the response")
	cmd.Flags().BoolVar(&o.isList, "list", false, "list the pipes and methods that this version knows, without a proxy")
	return cmd
}

func call(cmd *cobra.Command, args []string, o callOptions) error {
	if len(args) != 2 {
		return cli.BadInput(errors.New(`name a method and a request in JSON, as in: pipeguard call --pipe filesystem-v1 PathExists '{"path": "C:\\var\\lib\\kubelet"}'`))
	}
	switch {
	case o.timeout <= 0:
		return cli.BadInput(errors.New("--timeout must be positive"))
	case o.pipe == "":
		return cli.BadInput(errors.New("name a pipe with --pipe"))
	}
	apis, err := findAPIs(o.pipe)
	if err != nil {
		return cli.BadInput(err)
	}
	api := apis[0]
	method, ok := api.Method(args[0])
	if !ok {
		return cli.BadInput(fmt.Errorf("%s has no method %q; see %q", api.GroupVersion(), args[0], cmd.CommandPath()+" --list"))
	}
	request, response := method.NewRequest(), method.NewResponse()
	if err := readRequest(args[1], cmd.InOrStdin(), request); err != nil {
		return cli.BadInput(fmt.Errorf("request of %s: %w", method.FullMethod, err))
	}
	if o.socketDir == "" && runtime.GOOS != "windows" {
		return cli.BadInput(errors.New("name the directory of the proxy's sockets with --socket-dir"))
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), o.timeout)
	defer cancel()
	if err := invoke(ctx, api.GroupVersion().Pipe(), o.socketDir, method.FullMethod, request, response); err != nil {
		s := status.Convert(err)
		err = fmt.Errorf("%s: %s", s.Code(), s.Message())
		if s.Code() == codes.Unavailable && strings.Contains(s.Message(), "while dialing") {
			err = errors.Join(err, errors.New("Nothing listens there: is the proxy running, and does it serve "+api.GroupVersion().String()+"? Its log says which pipes it serves."))
		}
		return cli.No(err)
	}
	return printResponse(cmd.OutOrStdout(), response)
}

// maxRequest bounds a request in JSON, in bytes; the proxy takes no message over 4 MiB.
const maxRequest = 4 << 20

func readRequest(arg string, stdin io.Reader, into proto.Message) error {
	doc := []byte(arg)
	if arg == "-" {
		var err error
		if doc, err = atmost.ReadAll(stdin, maxRequest); err != nil {
			return err
		}
	}
	if err := protojson.Unmarshal(doc, into); err != nil {
		// protojson puts its own name and, on purpose, varying blanks before the text.
		return errors.New(strings.TrimLeft(strings.TrimPrefix(err.Error(), "proto:"), " \u00a0"))
	}
	return nil
}

func invoke(ctx context.Context, name, socketDir, fullMethod string, request, response proto.Message) error {
	// "passthrough" hands the name to the dialer as it is; it is no host name to look up.
	conn, err := grpc.NewClient("passthrough:///"+name,
		grpc.WithTransportCredentials(insecure.NewCredentials()), // a pipe of this machine: there is no wire to protect
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return pipe.Dial(ctx, name, pipe.Options{SocketDir: socketDir})
		}))
	if err != nil {
		return err
	}
	err = conn.Invoke(ctx, fullMethod, request, response)
	// The answer is there or it is not; closing changes neither.
	_ = conn.Close()
	return err
}

func printResponse(w io.Writer, response proto.Message) error {
	doc, err := protojson.MarshalOptions{EmitUnpopulated: true, UseProtoNames: true}.Marshal(response)
	if err != nil {
		return cli.BadInput(fmt.Errorf("response: %w", err))
	}
	p := cli.NewPrinter(w)
	// protojson varies its blanks on purpose; encoding the text once more gives one form, with inert characters.
	p.JSON(json.RawMessage(doc))
	return p.Done(nil)
}
