package main

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/pipeguard/pipeguard/internal/logkeys"
)

func TestConnectionsWithoutRequestsAreBoundedAndKeepNobodyFromAReview(t *testing.T) {
	p := start(t)
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.0.2")}}
	const crowd = 1200
	for i := range crowd {
		conn, err := dialer.DialContext(t.Context(), "tcp", p.webhook.address())
		if err != nil && i == 0 {
			t.Skipf("this system has one loopback address: %v", err)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	if answer := p.review(t, "default", pipe); answer.Allowed {
		t.Fatal("a pod was admitted")
	}
	if open, closed := p.webhook.listener.Open(), p.webhook.listener.Closed(); closed == 0 || open > crowd-100 {
		t.Errorf("%d connections are open, %d were closed", open, closed)
	}
	_, metrics := p.get(t, "metrics", "/metrics")
	for _, name := range []string{"pipeguard_webhook_connections ", "pipeguard_webhook_connections_closed_total "} {
		if !strings.Contains(metrics, "\n"+name) {
			t.Errorf("/metrics has no %s", name)
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
