package copies

import (
	"errors"
	"fmt"

	service "go.opentelemetry.io/proto/slim/otlp/collector/logs/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pipeguard/pipeguard/internal/audit/inert"
)

// mostSaid bounds what a collector may put into this program's log with one answer, in bytes.
const mostSaid = 512

// errAnswer means that it is not known what the collector took.
var errAnswer = errors.New("the collector's answer cannot be read")

// rejected returns nil if all of sent records were taken. A partial success is not sent again, says the specification: the
// collector would refuse the same ones.
func rejected(answer *service.ExportLogsServiceResponse, sent int) error {
	n, message := answer.GetPartialSuccess().GetRejectedLogRecords(), answer.GetPartialSuccess().GetErrorMessage()
	switch {
	case n < 0 || n > int64(sent):
		return fmt.Errorf("%w: it rejects %d of %d records", errAnswer, n, sent)
	case n > 0:
		return &PartialError{Failed: int(n), Err: errors.New("rejected by the collector: " + said(message))}
	case message != "":
		return &PartialError{Failed: 0, Err: errors.New("the collector warns: " + said(message))}
	}
	return nil
}

// judge says whether to ask again, as https://opentelemetry.io/docs/specs/otlp/#failures has it.
func judge(err error) error {
	s := status.Convert(err)
	told := fmt.Errorf("%v: %s", s.Code(), said(s.Message()))
	again := &AgainError{Err: told}
	for _, d := range s.Details() {
		if info, ok := d.(*errdetails.RetryInfo); ok && info.GetRetryDelay() != nil {
			again.After = info.GetRetryDelay().AsDuration()
			if s.Code() == codes.ResourceExhausted {
				return again
			}
		}
	}
	switch s.Code() {
	case codes.Canceled, codes.DeadlineExceeded, codes.Aborted, codes.OutOfRange, codes.Unavailable, codes.DataLoss:
		return again
	default: // also ResourceExhausted without a time: the batch is too large, and will be
		return told
	}
}

// said is a text of the collector, bounded and safe to print.
func said(s string) string { return cut(inert.Line(s[:min(len(s), mostSaid)]), mostSaid) }
