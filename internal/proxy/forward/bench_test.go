package forward

import (
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/proxy"
)

// BenchmarkUnary is a call to a server on a pipe, with the guard before it and without. Records are encoded and thrown away.
func BenchmarkUnary(b *testing.B) {
	g := newGuard(b, func(_ *guard, o *proxy.Options) { o.Audit = audit.NewStream(io.Discard) })
	serveEcho(b, g.back, g.pipes)
	for _, size := range []int{100, 100_000} {
		sent := random(size)
		for _, way := range []string{"direct", "guarded"} {
			name := g.back
			if way == "guarded" {
				name = g.front
			}
			client := dial(b, name, g.pipes)
			b.Run(fmt.Sprintf("%s/bytes=%d", way, size), func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(size))
				for b.Loop() {
					if _, err := unary(context.Background(), client, "/test.v1.Echo/Unary", sent); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
