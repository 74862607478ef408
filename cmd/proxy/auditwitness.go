package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/config"
	"github.com/pipeguard/pipeguard/internal/httpsclient"
	"github.com/pipeguard/pipeguard/internal/logkeys"
)

// witnessState is what the witness said last.
type witnessState struct {
	contradicted atomic.Bool  // it has seen another log of this name
	clockDiffers atomic.Bool  // its clock and the node's differ too much, so that it does not compare logs
	cosigned     atomic.Int64 // Unix time of its last cosignature, 0 for none
}

// witness is a client that keeps the witness's last answer.
type witness struct {
	*evidence.Client
	state *witnessState
}

// Send implements evidence.Sink.
func (w witness) Send(ctx context.Context, c evidence.Copy) error {
	err := w.Client.Send(ctx, c)
	switch {
	case errors.Is(err, evidence.ErrWitnessClock):
		w.state.clockDiffers.Store(true)
	case errors.Is(err, evidence.ErrWitnessAhead), errors.Is(err, evidence.ErrWitnessRefuses):
		w.state.contradicted.Store(true)
		w.state.clockDiffers.Store(false) // it is asked about first
	}
	return err
}

func newWitnessClient(c config.Witness, state *witnessState, log *zap.Logger) (evidence.Sink, error) {
	asks, err := httpsclient.New(httpsclient.Options{CAFile: c.CAFile})
	if err != nil {
		return nil, err
	}
	client, err := evidence.NewClient(evidence.ClientOptions{
		URL: c.URL, Key: c.Key, HTTP: asks, Interval: c.Interval,
		OnCosigned: func([]byte) {
			if state.cosigned.Swap(time.Now().Unix()) == 0 {
				log.Info("the witness cosigns the audit log", zap.String(logkeys.Address, c.URL))
			}
			state.contradicted.Store(false)
			state.clockDiffers.Store(false)
		},
	})
	if err != nil {
		return nil, err
	}
	return witness{client, state}, nil
}
