package copies

import (
	"strconv"
	"time"
	"unicode/utf8"

	service "go.opentelemetry.io/proto/slim/otlp/collector/logs/v1"
	common "go.opentelemetry.io/proto/slim/otlp/common/v1"
	logs "go.opentelemetry.io/proto/slim/otlp/logs/v1"
	resource "go.opentelemetry.io/proto/slim/otlp/resource/v1"
	"google.golang.org/grpc"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// exportMethod is the collector's. The slim module has its messages without the stubs, which would bring an HTTP gateway along.
const exportMethod = "/opentelemetry.proto.collector.logs.v1.LogsService/Export"

// otlp sends to a collector.
type otlp struct {
	conn     *grpc.ClientConn
	resource *resource.Resource
	now      func() time.Time
}

func resourceOf(o OTLPOptions) *resource.Resource {
	r := &resource.Resource{Attributes: []*common.KeyValue{text("service.name", "pipeguard-proxy")}}
	for _, a := range []struct{ key, value string }{{"host.name", o.Host}, {"k8s.node.name", o.Node}} {
		if a.value != "" {
			r.Attributes = append(r.Attributes, text(a.key, a.value))
		}
	}
	return r
}

func (o *otlp) request(records []Record) *service.ExportLogsServiceRequest {
	now := nanos(o.now())
	out := make([]*logs.LogRecord, 0, len(records))
	for _, r := range records {
		out = append(out, logRecord(r, now))
	}
	return &service.ExportLogsServiceRequest{ResourceLogs: []*logs.ResourceLogs{{
		Resource:  o.resource,
		ScopeLogs: []*logs.ScopeLogs{{Scope: &common.InstrumentationScope{Name: "pipeguard.audit", Version: strconv.Itoa(audit.Version)}, LogRecords: out}},
	}}}
}

// logRecord has the raw line as its body, and as attributes what a SIEM filters on. A line that is no text goes as bytes: one of them
// would otherwise keep its whole batch from being encoded.
func logRecord(r Record, now uint64) *logs.LogRecord {
	if r.Checkpoint != nil {
		return &logs.LogRecord{
			ObservedTimeUnixNano: now, SeverityNumber: logs.SeverityNumber_SEVERITY_NUMBER_INFO, SeverityText: "INFO",
			Body: body(r.Checkpoint), EventName: "pipeguard.audit.checkpoint",
		}
	}
	f := factsOf(r.Line)
	number, name := severityOf(f.kind().severity)
	out := &logs.LogRecord{
		ObservedTimeUnixNano: now, SeverityNumber: number, SeverityText: name, Body: body(r.Line), EventName: "pipeguard.audit.record",
		Attributes: make([]*common.KeyValue, 0, len(f.list)),
	}
	if at, err := time.Parse(time.RFC3339Nano, f.text("time")); err == nil {
		out.TimeUnixNano = nanos(at)
	}
	for _, v := range f.list {
		out.Attributes = append(out.Attributes, v.keyValue())
	}
	return out
}

// keyValue is the field under the name that it has in the record. Numbers of 63 bits stay numbers.
func (f *fact) keyValue() *common.KeyValue {
	if n, err := strconv.ParseInt(f.text, 10, 64); f.isNumber && err == nil {
		return &common.KeyValue{Key: f.attribute, Value: &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: n}}}
	}
	return text(f.attribute, f.text)
}

func text(key, value string) *common.KeyValue {
	return &common.KeyValue{Key: key, Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: value}}}
}

func body(raw []byte) *common.AnyValue {
	if !utf8.Valid(raw) {
		return &common.AnyValue{Value: &common.AnyValue_BytesValue{BytesValue: raw}}
	}
	return &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: string(raw)}}
}

func severityOf(s severity) (number logs.SeverityNumber, name string) {
	switch s {
	case failure:
		return logs.SeverityNumber_SEVERITY_NUMBER_ERROR, "ERROR"
	case warning:
		return logs.SeverityNumber_SEVERITY_NUMBER_WARN, "WARN"
	default:
		return logs.SeverityNumber_SEVERITY_NUMBER_INFO, "INFO"
	}
}

// nanos is a time as OTLP counts it, 0 (not known) before 1970.
func nanos(t time.Time) uint64 { return uint64(max(t.UnixNano(), 0)) } // #nosec G115 -- not negative
