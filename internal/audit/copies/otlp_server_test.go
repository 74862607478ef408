package copies

import (
	"context"
	"crypto/tls"
	"net"
	"path/filepath"
	"testing"
	"time"

	service "go.opentelemetry.io/proto/slim/otlp/collector/logs/v1"
	logs "go.opentelemetry.io/proto/slim/otlp/logs/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/pipeguard/pipeguard/test/harness"
)

// collectorServer serves the collector's LogsService.
type collectorServer struct {
	address string
	got     chan *service.ExportLogsServiceRequest // what was taken
	answer  func(*service.ExportLogsServiceRequest) ([]byte, error)
	grpc    *grpc.Server
	cert    *tls.Certificate // nil serves plain text
}

// startCollector serves until the test ends. answer returns the encoded ExportLogsServiceResponse; nil takes everything.
func startCollector(t *testing.T, cert *tls.Certificate, answer func(*service.ExportLogsServiceRequest) ([]byte, error)) *collectorServer {
	t.Helper()
	s := &collectorServer{address: "127.0.0.1:0", got: make(chan *service.ExportLogsServiceRequest, 1000), answer: answer, cert: cert}
	s.start(t)
	t.Cleanup(func() { s.grpc.Stop() })
	return s
}

func (s *collectorServer) start(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	s.address = listener.Addr().String()
	var options []grpc.ServerOption
	if s.cert != nil {
		options = append(options, grpc.Creds(credentials.NewServerTLSFromCert(s.cert)))
	}
	s.grpc = grpc.NewServer(options...)
	s.grpc.RegisterService(&grpc.ServiceDesc{
		ServiceName: "opentelemetry.proto.collector.logs.v1.LogsService", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Export", Handler: func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			in, out := &service.ExportLogsServiceRequest{}, &service.ExportLogsServiceResponse{}
			if err := decode(in); err != nil {
				return nil, err
			}
			if s.answer != nil {
				raw, err := s.answer(in)
				if err != nil {
					return nil, err
				}
				out.ProtoReflect().SetUnknown(raw)
			}
			s.got <- in
			return out, nil
		}}},
	}, s)
	go func(g *grpc.Server) { _ = g.Serve(listener) }(s.grpc)
}

// next returns the records of the next request that was taken.
func (s *collectorServer) next(t *testing.T) []*logs.LogRecord {
	t.Helper()
	select {
	case d := <-s.got:
		if len(d.GetResourceLogs()) != 1 || len(d.GetResourceLogs()[0].GetScopeLogs()) != 1 {
			t.Fatalf("a request of another shape: %v", d)
		}
		return d.GetResourceLogs()[0].GetScopeLogs()[0].GetLogRecords()
	case <-time.After(time.Minute):
		t.Fatal("nothing came within a minute")
	}
	return nil
}

// certificate returns a certificate for 127.0.0.1 that signs itself, and its file as a CA.
func certificate(t *testing.T) (cert *tls.Certificate, caFile string) {
	t.Helper()
	c := harness.SelfSigned(t, "127.0.0.1")
	caFile = filepath.Join(t.TempDir(), "ca.pem")
	harness.Replace(t, caFile, c.PEM)
	return &c.Certificate, caFile
}

func mustOTLP(t *testing.T, o OTLPOptions) Destination {
	t.Helper()
	p, err := OTLP(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
