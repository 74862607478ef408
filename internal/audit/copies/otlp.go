package copies

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	service "go.opentelemetry.io/proto/slim/otlp/collector/logs/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/pipeguard/pipeguard/internal/httpsclient"
)

// OTLPOptions say which collector gets the records, and which machine they come from.
type OTLPOptions struct {
	// Endpoint is HOST:PORT of the collector's gRPC receiver. No proxy that the environment names is asked: the records go where this says.
	Endpoint string
	// CAFile has the certificates, in PEM, that the collector must be signed by; without it, those that the system trusts. It is read once.
	CAFile string
	// Insecure sends in plain text: an attacker on the network path reads who did what, and can answer in the collector's place.
	Insecure bool
	// Host and Node become the resource attributes host.name and k8s.node.name. One that is empty is left out.
	Host, Node string
	// Now is the clock, time.Now if nil.
	Now func() time.Time
}

const (
	// sendTimeout bounds one attempt. Collectors that queue answer in milliseconds.
	sendTimeout = 10 * time.Second
	// gatherFor makes batches of a busy node. It is what a copy may be behind the log, and what is lost of it if the process is killed.
	gatherFor = 100 * time.Millisecond
	// mostAnswer bounds what is read of an answer: a count and an error.
	mostAnswer = 64 << 10
)

// OTLP returns a destination that sends each record as an OpenTelemetry log record: its body is the raw line. It connects when there
// is something to send, and asks again while the collector is away; a batch whose answer was lost arrives twice.
// https://opentelemetry.io/docs/specs/otlp
func OTLP(o OTLPOptions) (Destination, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	unfit := CheckEndpoint(o.Endpoint)
	if unfit != nil {
		unfit = fmt.Errorf("endpoint: %w", unfit)
	}
	secure, err := transport(o)
	if err = errors.Join(unfit, err); err != nil {
		return nil, fmt.Errorf("copies to OpenTelemetry: %w", err)
	}
	// Without the scheme, a name before the colon could be taken for one.
	conn, err := grpc.NewClient("dns:///"+o.Endpoint,
		grpc.WithTransportCredentials(secure),
		grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(), // which DNS would be asked for
		grpc.WithUserAgent("pipeguard-proxy"),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: firstPause, Multiplier: 2, Jitter: 0.5, MaxDelay: lastPause},
			MinConnectTimeout: sendTimeout,
		}),
		grpc.WithMaxHeaderListSize(mostAnswer),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(mostAnswer)),
	)
	if err != nil {
		return nil, fmt.Errorf("copies to OpenTelemetry: %w", err)
	}
	return &otlp{conn: conn, resource: resourceOf(o), now: o.Now}, nil
}

// CheckEndpoint says whether an address is one that OTLP takes: HOST:PORT.
func CheckEndpoint(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil || strings.Contains(host, "/") {
		return fmt.Errorf("%q: want HOST:PORT", address)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || host == "" {
		return fmt.Errorf("%q: want a host and a port from 1 to 65535", address)
	}
	return nil
}

// transport says how the collector proves who it is.
func transport(o OTLPOptions) (credentials.TransportCredentials, error) {
	switch {
	case o.Insecure && o.CAFile != "":
		return nil, errors.New("a CA file is of no use without TLS")
	case o.Insecure:
		return insecure.NewCredentials(), nil
	}
	roots, err := httpsclient.CertPool(o.CAFile)
	if err != nil {
		return nil, err
	}
	return credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}), nil
}

// Name implements Destination.
func (*otlp) Name() string { return "otlp" }

// CheckpointEvery takes all checkpoints.
func (*otlp) CheckpointEvery() time.Duration { return 0 }

// Gather makes batches.
func (*otlp) Gather() time.Duration { return gatherFor }

// Close implements io.Closer.
func (o *otlp) Close() error { return o.conn.Close() }

// Send implements Destination.
func (o *otlp) Send(ctx context.Context, records []Record) error {
	request := o.request(records)
	ctx, stop := context.WithTimeout(ctx, sendTimeout)
	defer stop()
	answer := &service.ExportLogsServiceResponse{}
	if err := o.conn.Invoke(ctx, exportMethod, request, answer); err != nil {
		return judge(err)
	}
	return rejected(answer, len(records))
}
