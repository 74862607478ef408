package forward

import (
	"strings"

	"google.golang.org/grpc/metadata"
)

// passable returns the metadata that is passed on from one side to the other. Headers of the connection or of gRPC itself are made
// anew on the other connection: content type, time-out, encoding, status. A caller's user agent is not passed on.
func passable(md metadata.MD) metadata.MD {
	passed := metadata.MD{}
	for key, values := range md {
		if isPassable(key) {
			passed[key] = values
		}
	}
	return passed
}

func isPassable(key string) bool {
	switch key {
	case "connection", "content-type", "host", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "user-agent":
		return false
	case "grpc-tags-bin", "grpc-trace-bin": // a caller's own, whatever the prefix
		return true
	}
	return key != "" && !strings.HasPrefix(key, ":") && !strings.HasPrefix(key, "grpc-")
}

// subtype returns what follows application/grpc+ in a content type: how messages are written is between caller and server.
func subtype(md metadata.MD) string {
	for _, value := range md.Get("content-type") {
		if _, after, ok := strings.Cut(value, "application/grpc+"); ok {
			return after
		}
	}
	return ""
}
