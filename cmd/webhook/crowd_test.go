package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/pipeguard/pipeguard/internal/logkeys"
)

func TestConnectionsWithoutRequestsAreBoundedAndKeepNobodyOut(t *testing.T) {
	s, _, _, err := newTestServer(t)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.webhook.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-ended, s.records.Close()); err != nil {
			t.Error(err)
		}
		for _, e := range s.endpoints {
			_ = e.listener.Close()
		}
	})
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.0.2")}}
	const crowd = 1200
	var gone atomic.Int64 // closed by the webhook for want of room, or of a handshake in time
	for i := range crowd {
		conn, err := dialer.DialContext(t.Context(), "tcp", s.webhook.address())
		if err != nil && i == 0 {
			t.Skipf("this system has one loopback address: %v", err)
		}
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() //nolint:errcheck // nothing was sent
		go func() {
			_, _ = conn.Read(make([]byte, 1))
			gone.Add(1)
		}()
	}
	eventually(t, "all were accepted", func() bool {
		return int64(s.webhook.listener.Open())+gone.Load() >= crowd
	})
	if err := s.webhook.answers(); err != nil {
		t.Error(err)
	}
	if open, closed := s.webhook.listener.Open(), s.webhook.listener.Closed(); closed == 0 || open > crowd-100 {
		t.Errorf("%d connections are open, %d were closed", open, closed)
	}
	families, err := s.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pipeguard_webhook_connections", "pipeguard_webhook_connections_closed_total"} {
		if !slices.ContainsFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == name }) {
			t.Errorf("there is no metric %s", name)
		}
	}
}

func TestLinesThatAnybodyCanCauseAreFewAndTellHowManyWereLeftOut(t *testing.T) {
	core, logs := observer.New(zap.DebugLevel)
	log := fewLines(zap.New(core))
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	log.Core().(*fewCore).tallies.now = func() time.Time { return now }
	connections := connectionLog(log)
	for i := range 1000 {
		connections.Printf("http: TLS handshake error from 10.0.0.1:%d: EOF", i)
		log.Info("request refused", zap.Int(logkeys.Code, i))
	}
	for _, message := range []string{"connection failed", "request refused"} {
		if n := logs.FilterMessage(message).Len(); n != linesAtOnce {
			t.Errorf("%s: %d lines", message, n)
		}
	}
	now = now.Add(linesTime)
	connections.Printf("http: TLS handshake error from 10.0.0.2:1: EOF")
	lines := logs.FilterMessage("connection failed").All()
	last := lines[len(lines)-1].ContextMap()
	if fmt.Sprint(last[logkeys.Omitted]) != "990" || last[logkeys.Reason] != "http: TLS handshake error from 10.0.0.2:1: EOF" {
		t.Errorf("the next line: %v", last)
	}
}
