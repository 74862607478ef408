package report

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"time"

	"github.com/pipeguard/pipeguard/internal/httpsclient"
)

// Options of a Reporter.
type Options struct {
	// Node is the name of the Node, and of its GuardedNode.
	Node string
	// Server is the API server's address, https://HOST:PORT.
	Server string
	// Credentials is a directory with the files token and ca.crt, as the kubelet fills it. They are read for each report.
	Credentials string
	// Service is the address that the service serves /status on, such as 127.0.0.1:9187; empty if it serves none.
	Service string
	// Fault says what keeps the installation from being as it should be. May be nil.
	Fault func() error
	// Say tells of reports that fail, and of the first after those that does not. May be nil.
	Say func(format string, args ...any)
}

const (
	// look is how often the service is asked, and so the least time between two reports.
	look = 10 * time.Second
	// wordsEvery is the least time between reports that differ in their message alone.
	wordsEvery = time.Minute
	// heartbeat is how often a report is repeated that tells nothing new. A tenth is added or taken away, so that nodes that
	// started together do not stay together. The controller takes a node for silent after three times as long.
	heartbeat = 5 * time.Minute
	// maxPause bounds the time between attempts that fail.
	maxPause = 5 * time.Minute
)

// Reporter keeps the GuardedNode of one node.
type Reporter struct {
	o       Options
	service service
	client  client

	last    node // that was stored
	stored  time.Time
	repeat  time.Duration // after stored
	failure string        // that was said
}

// nodeName is a DNS subdomain, as names of Nodes are.
var nodeName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// New returns a Reporter, or every fault of the options.
func New(o Options) (*Reporter, error) {
	var faults []error
	if len(o.Node) > 253 || !nodeName.MatchString(o.Node) {
		faults = append(faults, fmt.Errorf("node %q: want the name of a Node", o.Node))
	}
	if _, err := httpsclient.ParseServer(o.Server); err != nil {
		faults = append(faults, fmt.Errorf("API server: %w", err))
	}
	if o.Credentials == "" {
		faults = append(faults, errors.New("no directory with credentials"))
	}
	service, err := newService(o.Service)
	if err := errors.Join(append(faults, err)...); err != nil {
		return nil, fmt.Errorf("reports: %w", err)
	}
	if o.Fault == nil {
		o.Fault = func() error { return nil }
	}
	if o.Say == nil {
		o.Say = func(string, ...any) {}
	}
	return &Reporter{o: o, service: service, client: client{server: o.Server, dir: o.Credentials, name: o.Node}}, nil
}

// Run reports until ctx is done. That a report fails changes nothing for the node.
func (r *Reporter) Run(ctx context.Context) {
	pause := look
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		err := r.step(ctx)
		if ctx.Err() != nil {
			return
		}
		r.say(err)
		if err == nil {
			pause = look
		} else {
			pause = min(2*pause, maxPause)
		}
		timer.Reset(pause)
	}
}

// step asks the service, and reports if it is time to.
func (r *Reporter) step(ctx context.Context) error {
	answer, err := r.service.ask(ctx)
	now := time.Now()
	n := describe(answer, err, r.o.Fault())
	since := now.Sub(r.stored)
	switch {
	case r.stored.IsZero(), since >= r.repeat, since < 0, !n.isAsGood(r.last):
	case !n.isAs(r.last) && since >= wordsEvery:
	default:
		return nil
	}
	n.ReportedAt = whole(now)
	if err := r.client.write(ctx, n); err != nil {
		return err
	}
	r.last, r.stored = n, now
	r.repeat = heartbeat - heartbeat/10 + rand.N(heartbeat/5) //nolint:gosec // nothing depends on whether it can be guessed
	return nil
}

func (r *Reporter) say(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	switch {
	case text != "" && text != r.failure:
		r.o.Say("node not reported: %s", text)
	case text == "" && r.failure != "":
		r.o.Say("node reported again")
	}
	r.failure = text
}
