//go:build linux

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pipeguard/pipeguard/test/bench/process"
	"github.com/pipeguard/pipeguard/test/harness"
)

const (
	memoryLimit = 512 << 20 // of the chart
	softLimit   = memoryLimit / 10 * 9
	addresses   = 4
	answerTime  = 15 * time.Second
)

func main() {
	clients := flag.Int("clients", 250, "how many clients post at one time")
	span := flag.Duration("time", 3*time.Second, "how long they do")
	exe := flag.String("webhook", "", "`file` of the webhook; empty builds it")
	only := flag.String("only", "", "measure only the reviews that have this `text` in their names")
	flag.Parse()
	if err := measure(context.Background(), *exe, *only, *clients, *span); err != nil {
		fmt.Fprintln(os.Stderr, "heavy:", err)
		os.Exit(1)
	}
}

func measure(ctx context.Context, exe, only string, clients int, span time.Duration) (err error) {
	dir, err := os.MkdirTemp("", "pgheavy")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if exe == "" {
		if exe, err = harness.Build(ctx, dir, "./cmd/webhook"); err != nil {
			return err
		}
	}
	fmt.Printf("%d cores, %s; %d clients of %d addresses for %v.\n\n", runtime.NumCPU(), runtime.Version(), clients, addresses, span)
	fmt.Print("| pod with | body | peak memory | answers to the flood | small reviews lost |\n|---|---|---|---|---|\n")
	var faults []error
	for _, s := range shapes() {
		if !strings.Contains(s.name, only) {
			continue
		}
		r, err := flood(ctx, exe, dir, s.text, clients, span)
		if err != nil {
			return fmt.Errorf("%d %s: %w", s.n, s.name, err)
		}
		fmt.Printf("| %d %s | %d KiB | %d MiB | %d | %d of %d |\n", s.n, s.name, len(s.text)>>10, r.peak>>20, r.answers, r.lost, r.asked)
		if r.peak > memoryLimit {
			faults = append(faults, fmt.Errorf("%d %s: %d MiB are more than the chart gives", s.n, s.name, r.peak>>20))
		}
	}
	return errors.Join(faults...)
}

// result is what one flood did.
type result struct {
	peak        int64 // bytes
	answers     int64 // reviews of the flood that were answered
	lost, asked int64 // small reviews that were not denied with their finding, and all of them
}

// flood posts one review from many clients, beside small ones, to a webhook of its own.
func flood(ctx context.Context, exe, dir, text string, clients int, span time.Duration) (r result, err error) {
	command := exec.CommandContext(ctx, exe, "--standalone", "--listen-address", "127.0.0.1:0", "--metrics-bind-address", "127.0.0.1:0", //nolint:gosec // our own program
		"--health-probe-bind-address", "127.0.0.1:0", "--write-ca", filepath.Join(dir, "ca.pem"), "--params", filepath.Join(harness.Root(), "test/quickstart/testdata/parameters.yaml"))
	command.Env = append(os.Environ(), fmt.Sprintf("GOMEMLIMIT=%d", softLimit))
	command.Stdout = io.Discard
	webhook, err := harness.Start("the webhook", command)
	if err != nil {
		return r, err
	}
	defer webhook.Kill()
	honest, url := client("127.0.0.1"), ""
	err = webhook.Await(ctx, time.Minute, func(ctx context.Context) error {
		address := harness.ServedAddresses(webhook.Stderr.Bytes())["reviews"]
		if url = "https://" + address + "/validate"; address == "" || !isDenied(post(ctx, honest, url, small)) {
			return errors.New("it does not answer")
		}
		return nil
	})
	if err != nil {
		return r, err
	}
	var answers, lost, asked atomic.Int64
	var all sync.WaitGroup
	end := time.Now().Add(span)
	for i := range clients {
		all.Go(func() {
			c := client(fmt.Sprintf("127.0.0.%d", 2+i%addresses))
			defer c.CloseIdleConnections()
			for time.Now().Before(end) {
				if _, err := post(ctx, c, url, text); err == nil {
					answers.Add(1)
				}
			}
		})
	}
	all.Go(func() {
		for ; time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			asked.Add(1)
			if !isDenied(post(ctx, honest, url, small)) {
				lost.Add(1)
			}
		}
	})
	all.Wait()
	memory, err := process.MemoryOf(webhook.PID())
	if err != nil || memory.Most == 0 { // of one that has ended nothing is known
		return r, errors.Join(fmt.Errorf("the webhook ended:\n%s", webhook.Stderr.String()), err)
	}
	return result{memory.Most, answers.Load(), lost.Load(), asked.Load()}, nil
}

// client connects from a loopback address of its own.
func client(from string) *http.Client {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: answerTime}
	return &http.Client{Timeout: answerTime, Transport: &http.Transport{
		DialContext: dialer.DialContext, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // a program that this one has started
	}}
}

func post(ctx context.Context, c *http.Client, url, text string) (answer string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(text))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close() //nolint:errcheck // only read
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	return string(body), err
}

// isDenied says whether a small review got its verdict.
func isDenied(answer string, err error) bool { return err == nil && strings.Contains(answer, "PG001") }
