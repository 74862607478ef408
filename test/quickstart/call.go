package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/protoadapt"
)

// dial opens a pipe for the published client stubs. On Windows they dial \\.\pipe\NAME themselves; here
// a unix socket stands in for the pipe.
func dial(socketDir, pipe string) (*grpc.ClientConn, error) {
	socket := filepath.Join(socketDir, pipe+".sock")
	return grpc.NewClient("passthrough:///"+pipe,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)), // the socket may be there a moment before its listener
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", socket)
		}))
}

// answer writes the outcome of a call on two lines. The stubs of old versions have messages of the first protobuf API.
func answer(call string, response protoadapt.MessageV1, err error) string {
	if err != nil {
		s := status.Convert(err)
		return fmt.Sprintf("%s\n    -> %s: %s\n", call, s.Code(), s.Message())
	}
	var text bytes.Buffer
	doc, err := protojson.MarshalOptions{EmitUnpopulated: true, UseProtoNames: true}.Marshal(protoadapt.MessageV2Of(response))
	if err == nil {
		err = json.Compact(&text, doc) // protojson varies its blanks on purpose
	}
	if err != nil {
		return fmt.Sprintf("%s\n    -> a response that cannot be shown: %v\n", call, err)
	}
	return fmt.Sprintf("%s\n    -> OK %s\n", call, text.Bytes())
}

// failedWith checks that a call ended with a code, and that its message names each of the words.
func failedWith(err error, want codes.Code, words ...string) error {
	s := status.Convert(err)
	if s.Code() != want {
		return fmt.Errorf("the call ended with %s, %s expected", s.Code(), want)
	}
	for _, word := range words {
		if !strings.Contains(s.Message(), word) {
			return fmt.Errorf("the message does not mention %q", word)
		}
	}
	return nil
}
