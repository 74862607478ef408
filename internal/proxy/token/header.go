package token

import (
	"strings"

	"google.golang.org/grpc/metadata"
)

const (
	// header is where gRPC clients put credentials.
	header = "authorization"
	// maxToken is in bytes. Tokens of Kubernetes take one to two KiB; every name in them is at most 253 bytes long.
	maxToken = 8 << 10
)

// fromMetadata returns the token of a call, or nothing if there is no header for one.
// Two headers are refused, since what reads the first and what reads the last would see different callers.
func fromMetadata(md metadata.MD) (Secret, bool, *Refusal) {
	values := md.Get(header)
	switch {
	case len(values) == 0:
		return "", false, nil
	case len(values) > 1:
		return "", true, refuse(Malformed, "%d headers %q came, and only one can hold", len(values), header)
	}
	scheme, text, ok := strings.Cut(values[0], " ")
	switch {
	case !ok || !strings.EqualFold(scheme, "Bearer"):
		return "", true, refuse(Malformed, "the header %q does not read: Bearer, a space, the token", header)
	case text == "":
		return "", true, refuse(Malformed, "the header %q holds no token", header)
	case len(text) > maxToken:
		return "", true, refuse(Malformed, "it is %d bytes long, and at most %d are read", len(text), maxToken)
	}
	return Secret(text), true, nil
}
