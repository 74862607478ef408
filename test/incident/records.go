package main

import (
	"context"
	"errors"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

// records are the node's log, signed and witnessed.
type records struct {
	writer   *segment.Writer
	evidence *evidence.Log
}

// beyond is longer than any run takes. The story is signed where a log begins and ends, and not by the time that the machine takes: a
// reviewer's guide that shows what is printed shows how much of the log each checkpoint is of.
const beyond = 24 * time.Hour

// openRecords opens the log as the node proxy does, and closes what a killed process left open.
func openRecords(ctx context.Context, p places, witness witnessing, now *clock) (*records, error) {
	key, err := evidence.ReadKey(p.signingKey())
	if err != nil {
		return nil, err
	}
	last, err := evidence.LastSigned(p.log(), nil, nil)
	if err != nil {
		return nil, err
	}
	client, err := evidence.NewClient(evidence.ClientOptions{URL: witness.url, Key: witness.key, Now: now.Now})
	if err != nil {
		return nil, err
	}
	r := &records{}
	r.writer, err = segment.Open(ctx, p.log(), segment.Options{
		Now: now.Now, SignEvery: beyond, Covered: last.Size, Where: &audit.Where{Node: nodeName},
		Evidence: func(*segment.Found) (segment.Evidence, error) {
			var err error
			r.evidence, err = evidence.Open(ctx, evidence.Options{
				Dir: p.log(), Keys: []*evidence.Key{key}, Sinks: []evidence.Sink{client}, Now: now.Now,
			})
			return r.evidence, err
		},
	})
	return r, err
}

// close writes the last record, and has the last checkpoint witnessed.
func (r *records) close(ctx context.Context) error {
	err := errors.Join(r.writer.Close(), r.evidence.Close(ctx))
	for _, s := range r.evidence.Sinks() {
		if s.Failed > 0 {
			err = errors.Join(err, errors.New("the witness did not take every checkpoint"))
		}
	}
	return err
}
