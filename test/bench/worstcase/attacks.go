//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// attacks are what each process of the hostile pod does until it is ended. Whatever the proxy closes is opened again.
var attacks = []struct {
	name string
	do   func(context.Context, target)
}{
	{"calls that are denied", func(ctx context.Context, t target) {
		t.again(ctx, attacked, func(c *client) error { return c.whole() })
	}},
	{"messages that are never whole", func(ctx context.Context, t target) { t.everyPipe(ctx, (*client).unfinished) }},
	{"connecting and closing in a loop", func(ctx context.Context, t target) {
		for ctx.Err() == nil {
			if c, err := t.open(attacked); err == nil {
				_ = c.Close()
			}
		}
	}},
	{"a storm of connections to all pipes", storm},
	{"that storm at a program that accepts and closes", storm},
	{"established connections that idle", func(ctx context.Context, t target) {
		t.everyPipe(ctx, func(c *client) error { time.Sleep(pause); return nil })
	}},
	{"frames that ask for nothing", func(ctx context.Context, t target) {
		t.again(ctx, attacked, func(c *client) error {
			return c.framer.WriteRawFrame(http2.FrameWindowUpdate, 0, 0, []byte{0, 0, 0, 1})
		})
	}},
	{"requests that are reset at once", func(ctx context.Context, t target) {
		t.again(ctx, attacked, func(c *client) error {
			if err := c.headers(false); err != nil {
				return err
			}
			return c.framer.WriteRSTStream(c.stream, http2.ErrCodeCancel)
		})
	}},
	{"headers of 16 KiB", func(ctx context.Context, t target) {
		t.everyPipe(ctx, func(c *client) error { return c.headers(true) })
	}},
}

// sunk is the attack that has nothing to do with the proxy, but for the processor's time: what the same storm costs a driver that way.
const sunk = "that storm at a program that accepts and closes"

// storm connects to all pipes in turn, closes most connections at once, and waits for the end of some.
func storm(ctx context.Context, t target) {
	const goroutines, held = 18, 4
	var all sync.WaitGroup
	pipes := t.names()
	for g := range goroutines {
		all.Go(func() {
			for i := g; ctx.Err() == nil && len(pipes) > 0; i++ {
				c, err := t.open(pipes[i%len(pipes)])
				if err != nil {
					continue
				}
				if i%held == 0 {
					_ = c.SetReadDeadline(time.Now().Add(pause))
					_, _ = c.Read(make([]byte, 1)) // its end, or that of the time
				}
				_ = c.Close()
			}
		})
	}
	all.Wait()
}

// sink accepts on sockets of the same names in another directory, and closes, until ctx ends.
func sink(ctx context.Context, t target) error {
	dir := t.pipes + sinkSuffix
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	for _, name := range t.names() {
		l, err := net.Listen("unix", filepath.Join(dir, name+".sock"))
		if err != nil {
			return err
		}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_ = c.Close()
			}
		}()
	}
	<-ctx.Done()
	return nil
}

// sinkSuffix is what the directory of the sink has behind the name of the pipes' own.
const sinkSuffix = "ink"

// pause is how long a hostile process waits before it opens what was closed, so that it is not another attack.
const pause = 50 * time.Millisecond

// target is the directory of the pipes.
type target struct{ pipes string }

func (t target) open(pipe string) (net.Conn, error) {
	return net.Dial("unix", filepath.Join(t.pipes, pipe+".sock"))
}

// everyPipe attacks all pipes, with two connections to each.
func (t target) everyPipe(ctx context.Context, do func(*client) error) {
	var all sync.WaitGroup
	for _, name := range t.names() {
		all.Go(func() { t.again(ctx, name, do) })
	}
	all.Wait()
}

// names are those of the pipes.
func (t target) names() (names []string) {
	files, _ := filepath.Glob(filepath.Join(t.pipes, "*.sock")) // the pattern is good
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), ".sock"))
	}
	return names
}

// again does the same on two connections to a pipe until ctx ends.
func (t target) again(ctx context.Context, pipe string, do func(*client) error) {
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for ctx.Err() == nil {
				t.once(ctx, pipe, do)
				time.Sleep(pause)
			}
		})
	}
	all.Wait()
}

func (t target) once(ctx context.Context, pipe string, do func(*client) error) {
	conn, err := t.open(pipe)
	if err != nil {
		return
	}
	c := newClient(conn)
	defer func() { _ = conn.Close() }() // it is an attack's
	for ctx.Err() == nil && do(c) == nil {
	}
}

// client speaks HTTP/2 frames.
type client struct {
	framer *http2.Framer
	buffer bytes.Buffer
	hpack  *hpack.Encoder
	stream uint32
	ended  chan struct{} // closed with the connection
}

func newClient(conn net.Conn) *client {
	c := &client{framer: http2.NewFramer(conn, nil), ended: make(chan struct{})}
	c.hpack = hpack.NewEncoder(&c.buffer)
	go func() {
		defer close(c.ended)
		_, _ = io.Copy(io.Discard, conn)
	}()
	_, _ = io.WriteString(conn, http2.ClientPreface) // an error is that of the next frame
	_ = c.framer.WriteSettings()
	return c
}

// headers begins a request.
func (c *client) headers(large bool) error {
	c.buffer.Reset()
	fields := [][2]string{
		{":method", "POST"}, {":scheme", "http"}, {":path", "/v1.Filesystem/Mkdir"}, {":authority", "pipe"},
		{"content-type", "application/grpc"}, {"te", "trailers"},
	}
	if large {
		fields = append(fields, [2]string{"x-large", string(bytes.Repeat([]byte{'~'}, 15<<10))})
	}
	for _, f := range fields {
		if err := c.hpack.WriteField(hpack.HeaderField{Name: f[0], Value: f[1], Sensitive: large}); err != nil {
			return err
		}
	}
	if c.stream == 0 {
		c.stream = 1
	} else {
		c.stream += 2
	}
	block := c.buffer.Bytes()
	first := block[:min(len(block), frameSize)]
	err := c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: c.stream, BlockFragment: first, EndHeaders: len(first) == len(block)})
	if rest := block[len(first):]; err == nil && len(rest) > 0 {
		err = c.framer.WriteContinuation(c.stream, true, rest)
	}
	return err
}

// frameSize is the most that a frame may hold unless the peer says more.
const frameSize = 16 << 10

// whole sends a request that is denied.
func (c *client) whole() error {
	if err := c.headers(false); err != nil {
		return err
	}
	const path = `C:\var\lib\kubelet\plugins\x`
	message := append([]byte{0, 0, 0, 0, byte(len(path) + 2), 10, byte(len(path))}, path...) // both lengths are constants below 128
	return c.framer.WriteData(c.stream, true, message)
}

// unfinished sends all of a message that is as large as the proxy once took, but its last byte.
func (c *client) unfinished() error {
	if err := c.headers(false); err != nil {
		return err
	}
	for _, size := range []uint32{256 << 10, 16 << 10} { // the first is refused by a proxy that takes no more than the second
		message := append(binary.BigEndian.AppendUint32([]byte{0}, size), make([]byte, size-1)...)
		for len(message) > 0 {
			part := message[:min(len(message), frameSize)]
			message = message[len(part):]
			if err := c.framer.WriteData(c.stream, false, part); err != nil {
				return err
			}
		}
		if err := c.headers(false); err != nil {
			return err
		}
	}
	return nil
}
