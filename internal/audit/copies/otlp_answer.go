package copies

import (
	"errors"
	"fmt"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/pipeguard/pipeguard/internal/audit/inert"
)

// mostSaid bounds what a collector may put into this program's log with one answer, in bytes.
const mostSaid = 512

// errAnswer means that it is not known what the collector took.
var errAnswer = errors.New("the collector's answer cannot be read")

// answer is an ExportLogsServiceResponse: its fields are those that an empty message does not know.
type answer struct{ raw emptypb.Empty }

// rejected returns nil if all of sent records were taken. A partial success is not sent again, says the specification: the
// collector would refuse the same ones.
func (a *answer) rejected(sent int) error {
	var n int64
	var message []byte
	err := fields(a.raw.ProtoReflect().GetUnknown(), func(number protowire.Number, _ uint64, partial []byte) error {
		if number != 1 {
			return nil
		}
		return fields(partial, func(number protowire.Number, count uint64, text []byte) error {
			switch number {
			case 1:
				n = int64(count) // #nosec G115 -- as an int64 is encoded
			case 2:
				message = text
			}
			return nil
		})
	})
	switch {
	case err != nil:
		return err
	case n < 0 || n > int64(sent):
		return fmt.Errorf("%w: it rejects %d of %d records", errAnswer, n, sent)
	case n > 0:
		return &PartialError{Failed: int(n), Err: errors.New("rejected by the collector: " + said(string(message)))}
	case len(message) > 0:
		return &PartialError{Failed: 0, Err: errors.New("the collector warns: " + said(string(message)))}
	}
	return nil
}

// fields calls each for the fields of a message that are numbers or have a length.
func fields(message []byte, each func(number protowire.Number, value uint64, data []byte) error) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return fmt.Errorf("%w: %w", errAnswer, protowire.ParseError(n))
		}
		message = message[n:]
		var value uint64
		var data []byte
		switch kind {
		case protowire.VarintType:
			value, n = protowire.ConsumeVarint(message)
		case protowire.BytesType:
			data, n = protowire.ConsumeBytes(message)
		default:
			n = protowire.ConsumeFieldValue(number, kind, message)
		}
		if n < 0 {
			return fmt.Errorf("%w: %w", errAnswer, protowire.ParseError(n))
		}
		message = message[n:]
		if err := each(number, value, data); err != nil {
			return err
		}
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

// said is a text of the collector's that acts on nobody who reads it.
func said(s string) string { return cut(inert.Line(s[:min(len(s), mostSaid)]), mostSaid) }
