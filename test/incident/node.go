package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

// nodeWord makes the program the process that guards the node, for one act: incident node ACT DIR WITNESS-URL WITNESS-KEY.
const nodeWord = "node"

// inFlight is the line by which the node says that an operation has begun that will not end.
const inFlight = "in flight"

// node is the guard while the callers of the story come and go.
type node struct {
	*guard
	clock   *clock
	log     *timed
	cluster *cluster
	out     io.Writer
}

// runNode plays one act. It ends early if its standard input does: whoever started it is gone.
func runNode(ctx context.Context, args []string, out io.Writer) error {
	if len(args) != 4 {
		return errUsage
	}
	act, ok := acts[args[0]]
	if !ok {
		return fmt.Errorf("no act %q", args[0])
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // nothing ends a read from standard input but its end, or the process's
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	n := &node{clock: &clock{}, out: out}
	if err := n.clock.set(act.begins); err != nil {
		return err
	}
	return n.play(ctx, act, places{args[1]}, witnessing{args[2], args[3]})
}

// play starts the guard, has the callers come, and stops it in order.
func (n *node) play(ctx context.Context, act act, p places, w witnessing) (err error) {
	log, err := openRecords(ctx, p, w, n.clock)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.close(context.WithoutCancel(ctx))) }()
	n.log = newTimed(log.writer, n.clock)
	if n.cluster, err = startCluster(fileDriver, p.cluster()); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.cluster.close()) }()
	tokens, err := n.cluster.guard()
	if err != nil {
		return err
	}
	if n.guard, err = newGuard(ctx, n.log, tokens, n.stall); err != nil {
		return err
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- n.server.Run(serving) }()
	err = n.tell(ctx, act.scenes)
	stop()
	return errors.Join(err, <-ended)
}

// stall holds up the operation during which the node is killed.
func (n *node) stall(ctx context.Context, op string, _ ...string) {
	if op != "ResizeVolume" {
		return
	}
	_, _ = fmt.Fprintln(n.out, inFlight) // if nobody reads it, nobody kills, and the run ends by its time limit
	<-ctx.Done()
}
