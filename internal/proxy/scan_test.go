package proxy

import (
	"bytes"
	"testing"

	"golang.org/x/net/http2"
)

// frames is what a client sends: preface, settings, and n requests, the last of them in three parts.
func frames(t testing.TB, n int) []byte {
	t.Helper()
	var out bytes.Buffer
	out.WriteString(preface)
	framer := http2.NewFramer(&out, nil)
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(framer.WriteSettings())
	for i := range n {
		id := uint32(2*i + 1)
		last := i == n-1
		check(framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: []byte("abc"), EndHeaders: !last}))
		if last {
			check(framer.WriteContinuation(id, false, nil))
			check(framer.WriteContinuation(id, true, []byte("def")))
		}
		check(framer.WriteData(id, true, bytes.Repeat([]byte{1}, 100)))
	}
	return out.Bytes()
}

func TestScannerCountsRequestsHoweverTheyAreCut(t *testing.T) {
	all := frames(t, 7)
	for size := 1; size <= len(all); size++ {
		var s scanner
		for rest := all; len(rest) > 0; {
			n := min(size, len(rest))
			s.feed(rest[:n])
			rest = rest[n:]
		}
		if s.blocks != 7 || s.begun != 7 || s.alien || s.bytes != len(all) {
			t.Fatalf("in pieces of %d: %+v", size, s)
		}
	}
}

func TestScannerDoesNotCount(t *testing.T) {
	for name, b := range map[string][]byte{
		"nothing":                  nil,
		"half a preface":           []byte(preface[:12]),
		"another protocol":         append([]byte("GET / HTTP/1.1\r\n"), frames(t, 3)...),
		"a preface with a mistake": append([]byte("PRI * HTTP/2.1\r\n\r\nSM\r\n\r\n"), frames(t, 3)[len(preface):]...),
		"settings":                 frames(t, 0),
		"headers that do not end":  append(frames(t, 0), 0, 0, 9, frameHeaders, flagEndHeaders, 0, 0, 0, 1, 'a'),
		"headers to be continued":  append(frames(t, 0), 0, 0, 1, frameHeaders, 0, 0, 0, 0, 1, 'a'),
	} {
		var s scanner
		s.feed(b)
		if s.blocks != 0 {
			t.Errorf("%s: %d requests", name, s.blocks)
		}
	}
}

func FuzzScanner(f *testing.F) {
	f.Add(frames(f, 3), 5)
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"), 1)
	f.Add(append([]byte(preface), 0xff, 0xff, 0xff, 1, 4), 2)
	f.Fuzz(func(t *testing.T, b []byte, size int) {
		var whole, cut scanner
		whole.feed(b)
		size = max(1, size)
		for rest := b; len(rest) > 0; {
			n := min(size, len(rest))
			cut.feed(rest[:n])
			rest = rest[n:]
		}
		if whole != cut {
			t.Errorf("at once %+v, in pieces of %d %+v", whole, size, cut)
		}
		if whole.begun > len(b)/9 || whole.blocks > len(b)/9 {
			t.Errorf("%+v of %d bytes", whole, len(b))
		}
	})
}
