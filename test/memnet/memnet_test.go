package memnet

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// pair returns both ends of a connection.
func pair(t *testing.T) (client, server net.Conn) {
	t.Helper()
	l := Listen()
	accepted := make(chan net.Conn, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			t.Error(err)
		}
		accepted <- c
	}()
	client, err := l.DialContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	server = <-accepted
	t.Cleanup(func() { _, _, _ = client.Close(), server.Close(), l.Close() })
	return client, server
}

func TestBytesArriveWholeAndInOrder(t *testing.T) {
	client, server := pair(t)
	sent := make([]byte, 10*buffered+7)
	for i := range sent {
		sent[i] = byte(rand.Uint32())
	}
	go func() {
		for rest := sent; len(rest) > 0; {
			n := min(len(rest), 1+rand.IntN(3*buffered))
			if got, err := client.Write(rest[:n]); err != nil || got != n {
				t.Errorf("wrote %d of %d: %v", got, n, err)
			}
			rest = rest[n:]
		}
		_ = client.Close()
	}()
	got, err := io.ReadAll(server)
	if err != nil || !bytes.Equal(got, sent) {
		t.Errorf("%d of %d bytes arrived as they were sent, %v", len(got), len(sent), err)
	}
	if _, err := server.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a write to an end that is closed: %v", err)
	}
}

func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := pair(t)
		begun := time.Now()
		_ = client.SetReadDeadline(begun.Add(time.Second))
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begun) != time.Second {
			t.Errorf("a read ended with %v after %s", err, time.Since(begun))
		}
		var timeout net.Error
		if _, err := client.Read(make([]byte, 1)); !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("a read behind its deadline: %v", err)
		}
		_ = client.SetReadDeadline(time.Time{})
		_, _ = server.Write([]byte("a"))
		if n, err := client.Read(make([]byte, 9)); n != 1 || err != nil {
			t.Errorf("a deadline that was taken back: %d, %v", n, err)
		}
		_ = client.SetWriteDeadline(time.Now().Add(time.Second))
		if n, err := client.Write(make([]byte, 2*buffered)); n != buffered || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a write that nobody reads: %d bytes, %v", n, err)
		}
		_ = client.SetDeadline(time.Now().Add(-time.Second))
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a deadline in the past: %v", err)
		}
	})
}

func TestANewDeadlineWakesAReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := pair(t)
		ended := make(chan error, 1)
		go func() {
			_, err := client.Read(make([]byte, 1))
			ended <- err
		}()
		synctest.Wait()
		_ = client.SetReadDeadline(time.Now())
		if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(err)
		}
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := pair(t)
		ended := make(chan error, 2)
		go func() {
			_, err := client.Read(make([]byte, 1))
			ended <- err
		}()
		go func() {
			_, err := client.Write(make([]byte, 2*buffered))
			ended <- err
		}()
		synctest.Wait()
		_ = client.Close()
		for range 2 {
			if err := <-ended; !errors.Is(err, io.ErrClosedPipe) {
				t.Errorf("what waited at a close ended with %v", err)
			}
		}
		if n, err := io.Copy(io.Discard, server); n != buffered || err != nil {
			t.Errorf("%d bytes were there after a close, %v", n, err)
		}
	})
}

func TestAListenerEnds(t *testing.T) {
	l := Listen()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.DialContext(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a dial whose context has ended: %v", err)
	}
	_, _ = l.Close(), l.Close()
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	if _, err := l.DialContext(t.Context()); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

// TestManyDialSideBySideInABubble is why the package is there: with timers that fire at once the race detector crashed here.
func TestManyDialSideBySideInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Listen()
		defer func() { _ = l.Close() }()
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_ = c.Close()
			}
		}()
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				for range 200 {
					c, err := l.DialContext(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					_ = c.SetDeadline(time.Now().Add(time.Minute))
					if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
						t.Error(err)
					}
					_ = c.Close()
				}
			})
		}
		all.Wait()
	})
}
