package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/admission/intake"
)

// silent opens connections from one address whose requests announce a body that does not come.
func (p *webhookProcess) silent(t *testing.T, address, path string, n int) {
	t.Helper()
	from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	for range n {
		plain, err := from.DialContext(t.Context(), "tcp", p.webhook.address())
		if err != nil {
			t.Fatal(err)
		}
		conn := tls.Client(plain, &tls.Config{InsecureSkipVerify: true}) // #nosec G402 -- whoever does this does not care
		t.Cleanup(func() { _ = conn.Close() })
		if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{", path); err != nil {
			t.Fatal(err)
		}
	}
}

func TestBodiesThatDoNotComeKeepNobodyFromAReview(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.2:0") //nolint:noctx // binding does not wait
	if err != nil {
		t.Skipf("this system has one loopback address: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		address func(i int) string
		tens    int
	}{
		"of one address":    {func(int) string { return "127.0.0.2" }, 30},
		"of many addresses": {func(i int) string { return fmt.Sprintf("127.0.0.%d", 2+i) }, 30},
		"of the same":       {func(int) string { return "127.0.0.1" }, 25},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t)
			for i := range c.tens {
				p.silent(t, c.address(i), validatePath, 10)
			}
			for range 200 {
				if answer := p.review(t, "default", pipe); answer.Allowed {
					t.Fatal("a pod was admitted")
				}
			}
		})
	}
}

func TestARequestThatNeverComesIsEnded(t *testing.T) {
	p := start(t)
	conn, err := tls.Dial("tcp", p.webhook.address(), &tls.Config{InsecureSkipVerify: true}) //nolint:noctx // loopback answers at once
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // only read
	if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{", validatePath); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 408 ") || !strings.Contains(string(answer), intake.ErrSlow.Error()) {
		t.Errorf("%v: %s", err, answer)
	}
}
