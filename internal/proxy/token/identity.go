package token

import (
	"log/slog"
	"time"

	"github.com/pipeguard/pipeguard/internal/core/caller"
)

// Mode says what a pipe does about tokens.
type Mode string

// The modes of a pipe.
const (
	// Off checks no token: one that is sent is ignored.
	Off Mode = "off"
	// IfPresent refuses calls with a token that is not right, and serves calls without one, which then have no token's identity.
	IfPresent Mode = "ifPresent"
	// Required refuses calls without a token that is right.
	Required Mode = "required"
)

// IsValid says whether m is one of the three modes. The empty mode is none.
func (m Mode) IsValid() bool { return m == Off || m == IfPresent || m == Required }

// Identity is the pod and service account that a token was made for. The zero value stands for a call without an accepted token.
type Identity struct {
	Namespace      string
	ServiceAccount string
	PodName        string
	PodUID         string
	Node           string
	// Expires is when the token ends by its own words.
	Expires time.Time
}

// Username is the name that the API server knows the service account by.
func (i Identity) Username() string {
	return "system:serviceaccount:" + i.Namespace + ":" + i.ServiceAccount
}

// Facts are what is known of a caller without its token. They come from the kernel, the container runtime and the kubelet.
// Strings of Facts are compared byte by byte.
type Facts struct {
	// Caller has its process, by which one of this boot is told from all others, and its pod if that could be proven. What was found out for one process is not used for another.
	caller.Caller
	// Stranger says that no rule names the caller. All such callers together may have as many questions open as one pod.
	Stranger bool
	// Alive returns nil while the process runs. Without it nothing is confirmed while the API server is away.
	Alive func() error
}

// Result says how an identity was found, for records and metrics.
type Result struct {
	// Present says that a token came with the call and was looked at.
	Present bool
	// Unbound says that a token came, but the caller's pod is not known, so that the token proves nothing and was not used.
	// It happens in mode IfPresent alone; the identity is then the zero value.
	Unbound bool
	// Method is how the token was verified, empty if none was.
	Method Method
	// ID is the token's own (JTI=...), by which the API server's audit log names it; it may be empty.
	ID string
	// Cached says that the answer was remembered from an earlier call.
	Cached bool
	// Stale says that the API server is away, and that this is what it said last about this token of this process.
	Stale bool
	// Checked is when the token was verified last.
	Checked time.Time
}

// Secret is text that no formatting verb, logger or encoder shows.
type Secret string

const hidden = "[secret]"

// String implements fmt.Stringer.
func (Secret) String() string { return hidden }

// GoString implements fmt.GoStringer.
func (Secret) GoString() string { return hidden }

// LogValue implements slog.LogValuer.
func (Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalText implements encoding.TextMarshaler.
func (Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }
