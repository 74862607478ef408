package winsvc

import (
	"context"
	"errors"
	"testing"
)

var errRun = errors.New("the run's own error")

func TestRunReturnsWhatTheFunctionReturns(t *testing.T) {
	for _, want := range []error{nil, errRun} {
		if got := Run(context.Background(), Options{}, func(context.Context, func()) error { return want }); !errors.Is(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}

func TestRunWaitsForTheFunctionAfterItsContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	finished := false
	err := Run(ctx, Options{}, func(ctx context.Context, _ func()) error {
		cancel()
		<-ctx.Done()
		finished = true
		return errRun
	})
	if !finished || !errors.Is(err, errRun) {
		t.Errorf("finished %t, %v", finished, err)
	}
}
