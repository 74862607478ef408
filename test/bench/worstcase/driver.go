//go:build linux

package main

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc"

	"github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
)

// latencies are those of calls on a connection that is kept.
type latencies []time.Duration

// at is a percentile.
func (l latencies) at(percent int) time.Duration {
	if len(l) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(l))
	return sorted[min(len(sorted)-1, len(sorted)*percent/100)]
}

// driven is how the driver fared.
type driven struct {
	latencies    latencies
	made, failed int
	first        error // of the calls that failed
}

// callTimeout is what a driver waits for an answer.
const callTimeout = 30 * time.Second

// drive makes calls one after another, fresh of them on connections of their own in between, and goes on for as long as least.
func drive(ctx context.Context, r *running, calls, fresh int, least time.Duration) (d driven) {
	kept, err := r.Connect()
	if err != nil {
		return driven{made: 1, failed: 1, first: err}
	}
	defer func() { _ = kept.Close() }() // nothing of it is used any more
	began, each := time.Now(), calls+1
	if fresh > 0 {
		each = max(1, calls/fresh)
	}
	for i := 0; (i < calls || time.Since(began) < least) && ctx.Err() == nil; i++ {
		if i%each == each-1 {
			own, err := r.Connect()
			if err == nil {
				_, err = call(ctx, own)
				_ = own.Close()
			}
			d.count(err)
		}
		took, err := call(ctx, kept)
		d.count(err)
		d.latencies = append(d.latencies, took)
		if i >= calls { // only the time is still to pass
			time.Sleep(time.Millisecond)
		}
	}
	return d
}

func (d *driven) count(err error) {
	if d.made++; err == nil {
		return
	}
	if d.failed++; d.first == nil {
		d.first = err
	}
}

func call(ctx context.Context, c *grpc.ClientConn) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	began := time.Now()
	_, err := v1.NewFilesystemClient(c).PathExists(ctx, &v1.PathExistsRequest{Path: `C:\var\lib\kubelet`})
	return time.Since(began), err
}
