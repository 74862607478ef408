package copies

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	service "go.opentelemetry.io/proto/slim/otlp/collector/logs/v1"
	common "go.opentelemetry.io/proto/slim/otlp/common/v1"
	logs "go.opentelemetry.io/proto/slim/otlp/logs/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/pipeguard/pipeguard/internal/audit"
)

func number(key string, n int64) *common.KeyValue {
	return &common.KeyValue{Key: key, Value: &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: n}}}
}

func TestACollectorGetsExactlyTheRecords(t *testing.T) {
	cert, ca := certificate(t)
	server := startCollector(t, cert, nil)
	at := time.Date(2026, 1, 2, 3, 5, 0, 0, time.UTC)
	c := mustNew(t, Options{Destinations: []Destination{mustOTLP(t, OTLPOptions{Endpoint: server.address, CAFile: ca, Host: "host-1", Node: "node-1", Now: func() time.Time { return at }})}})
	l := line(t, denied)
	c.Record(l)
	mustClose(t, c)
	want := &service.ExportLogsServiceRequest{ResourceLogs: []*logs.ResourceLogs{{
		Resource: resourceOf(OTLPOptions{Host: "host-1", Node: "node-1"}),
		ScopeLogs: []*logs.ScopeLogs{{
			Scope: &common.InstrumentationScope{Name: "pipeguard.audit", Version: "1"},
			LogRecords: []*logs.LogRecord{{
				TimeUnixNano: 1767323045000006000, ObservedTimeUnixNano: uint64(at.UnixNano()), SeverityNumber: 13, SeverityText: "WARN", EventName: "pipeguard.audit.record",
				Body: body(bytes.TrimSpace(l)),
				Attributes: []*common.KeyValue{
					number("pipeguard.seq", 7), text("pipeguard.type", "request"), text("pipeguard.stage", "ResponseComplete"), text("pipeguard.time", "2026-01-02T03:04:05.000006Z"),
					text("pipeguard.session", "S"), text("pipeguard.id", "RW7UZ275BXWT453VSXCFNR6NIK"), number("pipeguard.intent_seq", 6),
					text("pipeguard.who.assurance", "pod"), number("pipeguard.who.process.pid", 4711), text("pipeguard.who.process.exe", `C:\driver\node.exe`),
					text("pipeguard.who.user.sid", "S-1-5-18"), text("pipeguard.who.pod.ns", "kube-system"), text("pipeguard.who.pod.name", "driver-1"),
					text("pipeguard.what.pipe", "csi-proxy-filesystem-v1"), text("pipeguard.what.group", "filesystem"), text("pipeguard.what.version", "v1"),
					text("pipeguard.what.method", "Mkdir"), text("pipeguard.what.full_method", "/v1.Filesystem/Mkdir"), text("pipeguard.what.verb", "write"),
					text("pipeguard.decision.effect", "deny"), text("pipeguard.decision.reason", "no rule"), text("pipeguard.decision.mode", "Enforce"),
					text("pipeguard.outcome.result", "denied"), text("pipeguard.outcome.code", "PermissionDenied"), number("pipeguard.outcome.latency_us", 0),
					text("pipeguard.corr.conn", "C"), text("pipeguard.where.node", "node-1"),
				},
			}},
		}},
	}}}
	if diff := cmp.Diff(want, <-server.got, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}

func TestACollectorGetsThousandsInOrderAndACheckpointBehindThem(t *testing.T) {
	cert, ca := certificate(t)
	server := startCollector(t, cert, nil)
	c := mustNew(t, Options{Destinations: []Destination{mustOTLP(t, OTLPOptions{Endpoint: server.address, CAFile: ca})}})
	const given = 3000
	for i := range uint64(given) {
		c.Record(line(t, numbered(i+1)))
	}
	if err := c.Checkpoints()[0].Send(t.Context(), checkpoint("o\n3000\nr\n", true)); err != nil {
		t.Fatal(err)
	}
	mustClose(t, c)
	if s := c.Stats()[0]; s.Sent != given {
		t.Errorf("%+v", s)
	}
	seq := uint64(0)
	for seq < given {
		for _, r := range server.next(t) {
			seq++
			if want := strings.TrimSpace(string(line(t, numbered(seq)))); r.GetBody().GetStringValue() != want || r.GetSeverityNumber() != logs.SeverityNumber_SEVERITY_NUMBER_INFO {
				t.Fatalf("record %d: %v", seq, r)
			}
		}
	}
	last := server.next(t)
	if len(last) != 1 || last[0].GetEventName() != "pipeguard.audit.checkpoint" || last[0].GetBody().GetStringValue() != "o\n3000\nr\n" || len(last[0].GetAttributes()) != 0 {
		t.Errorf("checkpoint: %v", last)
	}
}

func TestACollectorThatIsStartedAgainGetsWhatCameMeanwhile(t *testing.T) {
	cert, ca := certificate(t)
	server := startCollector(t, cert, nil)
	c := mustNew(t, Options{Destinations: []Destination{mustOTLP(t, OTLPOptions{Endpoint: server.address, CAFile: ca})}})
	c.Record(line(t, numbered(1)))
	if n := len(server.next(t)); n != 1 {
		t.Fatalf("%d records", n)
	}
	if err := c.Checkpoints()[0].Send(t.Context(), checkpoint("n", false)); err != nil { // the first was answered, then
		t.Fatal(err)
	}
	server.next(t)
	server.grpc.Stop()
	for i := range uint64(10) {
		c.Record(line(t, numbered(i+2)))
	}
	server.start(t)
	want := uint64(2)
	for want < 12 {
		for _, r := range server.next(t) {
			if got, err := audit.Parse([]byte(r.GetBody().GetStringValue())); err != nil || got.Seq != want {
				t.Fatalf("record %d: %v, %v", want, got.Seq, err)
			}
			want++
		}
	}
	mustClose(t, c)
	if s := c.Stats()[0]; s.Sent != 11 || s.Failed != 0 || s.Dropped != 0 {
		t.Errorf("%+v", s)
	}
}

// patient waits for the end before it sends, so that all is one batch.
type patient struct{ *otlp }

func (patient) Gather() time.Duration { return time.Hour }

// partial is an answer that rejects n records.
func partial(n int64, message string) []byte {
	var p []byte
	p = protowire.AppendVarint(protowire.AppendTag(p, 1, protowire.VarintType), uint64(n))
	p = protowire.AppendString(protowire.AppendTag(p, 2, protowire.BytesType), message)
	return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), p)
}

func TestWhatACollectorRejectsIsCountedAndNotSentAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		answer       []byte
		sent, failed uint64
		told         string
	}{
		"all taken":                       {nil, 4, 0, ""},
		"an empty partial success":        {[]byte{10, 0}, 4, 0, ""},
		"some rejected":                   {partial(3, "too\x1b[31m old\n"), 1, 3, "too<U+001B>[31m old<U+000A>"},
		"all rejected":                    {partial(4, "no"), 0, 4, "rejected by the collector: no"},
		"a warning":                       {partial(0, "slow down"), 4, 0, "the collector warns: slow down"},
		"more rejected than there were":   {partial(5, ""), 0, 4, "cannot be read"},
		"fewer than none":                 {partial(-1, ""), 0, 4, "cannot be read"},
		"an answer that is cut":           {partial(1, "no")[:4], 0, 4, ""},
		"a field that nobody knows":       {protowire.AppendFixed64(protowire.AppendTag(nil, 9, protowire.Fixed64Type), 7), 4, 0, ""},
		"an endless message":              {partial(1, strings.Repeat("x", 10_000)), 3, 1, strings.Repeat("x", 400)},
		"an answer that is far too large": {partial(1, strings.Repeat("x", 100_000)), 0, 4, "ResourceExhausted"},
	} {
		t.Run(name, func(t *testing.T) {
			server := startCollector(t, nil, func(*service.ExportLogsServiceRequest) ([]byte, error) { return tc.answer, nil })
			var told troubles
			p := patient{mustOTLP(t, OTLPOptions{Endpoint: server.address, Insecure: true}).(*otlp)}
			c := mustNew(t, Options{Destinations: []Destination{p}, OnLoss: told.add})
			for range 4 {
				c.Record(line(t))
			}
			mustClose(t, c)
			if diff := cmp.Diff([]Stats{{Name: "otlp", Sent: tc.sent, Failed: tc.failed}}, c.Stats()); diff != "" {
				t.Errorf("%s, told %q", diff, told.texts())
			}
			all := strings.Join(told.texts(), "|")
			if !strings.Contains(all, tc.told) || len(all) > 700 {
				t.Errorf("told %q", all)
			}
			if n := len(server.got); n != 1 {
				t.Errorf("sent %d times", n)
			}
		})
	}
}

func TestOnlyWhatMayHelpIsAskedAgain(t *testing.T) {
	retry := func(c codes.Code, d time.Duration) error {
		s, err := status.New(c, "m").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(d)})
		if err != nil {
			t.Fatal(err)
		}
		return s.Err()
	}
	for name, tc := range map[string]struct {
		err   error
		again bool
		after time.Duration
	}{
		"away":                            {status.Error(codes.Unavailable, "m"), true, 0},
		"away for a time":                 {retry(codes.Unavailable, time.Minute), true, time.Minute},
		"no answer":                       {context.DeadlineExceeded, false, 0}, // never from gRPC, which has a status for it
		"no answer in time":               {status.Error(codes.DeadlineExceeded, "m"), true, 0},
		"too much for now":                {retry(codes.ResourceExhausted, time.Second), true, time.Second},
		"too large":                       {status.Error(codes.ResourceExhausted, "m"), false, 0},
		"no service":                      {status.Error(codes.Unimplemented, "m"), false, 0},
		"who are you":                     {status.Error(codes.Unauthenticated, "m"), false, 0},
		"not for you, though with a time": {retry(codes.PermissionDenied, time.Second), false, 0},
		"a fault of its own":              {status.Error(codes.Internal, "m"), false, 0},
		"a code that nobody knows":        {status.Error(codes.Code(99), "m"), false, 0},
	} {
		var again *AgainError
		err := judge(tc.err)
		if got := errors.As(err, &again); got != tc.again || got && again.After != tc.after {
			t.Errorf("%s: %v, %+v", name, got, again)
		}
	}
}

func TestACollectorThatIsAwayLosesWhatTheQueueDoesNotHold(t *testing.T) {
	server := startCollector(t, nil, func(*service.ExportLogsServiceRequest) ([]byte, error) {
		return nil, status.Error(codes.Unavailable, "draining")
	})
	told := make(chan error, 100)
	c := mustNew(t, Options{Destinations: []Destination{mustOTLP(t, OTLPOptions{Endpoint: server.address, Insecure: true})}, Queue: 20_000, OnLoss: func(err error) { told <- err }})
	for range 1000 {
		c.Record(line(t))
	}
	if err := <-told; !strings.Contains(err.Error(), "dropped, the queue is full") && !strings.Contains(err.Error(), "draining") { // whichever was first
		t.Error(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := c.Close(ctx); err == nil {
		t.Error("nobody said that records were lost")
	}
	<-c.queues[0].done
	room := uint64(20_000 / cost(bytes.TrimSpace(line(t))))
	if s := c.Stats()[0]; s.Sent != 0 || s.Queued != 0 || s.Failed != room || s.Dropped != 1000-room {
		t.Errorf("%+v", s)
	}
	if n := len(server.got); n != 0 {
		t.Errorf("%d requests were taken", n)
	}
}

func TestACollectorThatCannotProveItselfGetsNothing(t *testing.T) {
	cert, _ := certificate(t)
	_, otherCA := certificate(t)
	for name, o := range map[string]OTLPOptions{
		"signed by another":     {CAFile: otherCA},
		"unknown to the system": {},
	} {
		server := startCollector(t, cert, nil)
		o.Endpoint = server.address
		p := mustOTLP(t, o)
		var again *AgainError
		err := p.Send(t.Context(), []Record{{Line: bytes.TrimSpace(line(t))}})
		if !errors.As(err, &again) || o.CAFile != "" && !strings.Contains(err.Error(), "certificate") { // each system has its own words
			t.Errorf("%s: %v", name, err)
		}
		if n := len(server.got); n != 0 {
			t.Errorf("%s: %d requests", name, n)
		}
		if err := p.(*otlp).Close(); err != nil {
			t.Error(err)
		}
	}
	plain := startCollector(t, nil, nil)
	p := mustOTLP(t, OTLPOptions{Endpoint: plain.address})
	defer p.(*otlp).Close()
	if err := p.Send(t.Context(), []Record{{Line: bytes.TrimSpace(line(t))}}); err == nil || len(plain.got) != 0 {
		t.Errorf("one that speaks plain text was sent to: %v", err)
	}
}

func TestALineThatIsNoTextDoesNotHoldUpItsBatch(t *testing.T) {
	server := startCollector(t, nil, nil)
	p := patient{mustOTLP(t, OTLPOptions{Endpoint: server.address, Insecure: true}).(*otlp)}
	c := mustNew(t, Options{Destinations: []Destination{p}})
	bad := []byte("{\"type\":\"request\",\"id\":\"\xff\",\"what\":{\"pipe\":\"\\ud800\"},\"seq\":99999999999999999999,\"time\":\"0001-01-01T00:00:00Z\"}")
	c.Record(bad)
	c.Record([]byte("\xff"))
	c.Record(line(t))
	mustClose(t, c)
	if s := c.Stats()[0]; s.Sent != 3 {
		t.Fatalf("%+v", s)
	}
	got := server.next(t)
	if !bytes.Equal(got[0].GetBody().GetBytesValue(), bad) || !bytes.Equal(got[1].GetBody().GetBytesValue(), []byte("\xff")) || got[2].GetBody().GetStringValue() == "" || got[0].GetTimeUnixNano() != 0 {
		t.Errorf("%v", got)
	}
}

func TestOTLPRefusesWhatCannotBeMeant(t *testing.T) {
	cert := filepath.Join(t.TempDir(), "none.pem")
	_, ca := certificate(t)
	for _, o := range []OTLPOptions{
		{}, {Endpoint: "collector"}, {Endpoint: ":4317"}, {Endpoint: "collector:"}, {Endpoint: "collector:0"}, {Endpoint: "collector:65536"}, {Endpoint: "collector:otlp"},
		{Endpoint: "https://collector:4317"}, {Endpoint: "unix:/run/x"}, {Endpoint: "collector:4317", CAFile: cert}, {Endpoint: "collector:4317", CAFile: "otlp_test.go"},
		{Endpoint: "collector:4317", CAFile: ca, Insecure: true},
	} {
		if _, err := OTLP(o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}
