package proxy

import (
	"context"
	"io"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// BenchmarkCall is the whole way of a call over bufconn, client included, with records that are encoded and thrown away.
func BenchmarkCall(b *testing.B) {
	f := start(b, "bufconn", func(o *Options) { o.Audit = audit.NewStream(io.Discard) })
	f.settled = true // the records are gone
	c := v1.NewFilesystemClient(f.client(b, "filesystem-v1"))
	for name, call := range map[string]func() error{
		"allowed": func() error {
			_, err := c.Mkdir(context.Background(), &v1.MkdirRequest{Path: `C:\var\lib\kubelet\plugins\x`})
			return err
		},
		"denied": func() error {
			if _, err := c.Rmdir(context.Background(), &v1.RmdirRequest{Path: `C:\a`}); err == nil {
				b.Error("not denied")
			}
			return nil
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := call(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
