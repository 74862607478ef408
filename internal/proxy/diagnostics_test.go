package proxy

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/protobuf/proto"

	v1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"

	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
)

// lines is a diagnostic log of all levels.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *lines) log() *zap.Logger {
	return zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(l), zap.DebugLevel))
}

// calls are the lines that name a call, by its audit id.
func (l *lines) calls(t *testing.T, most int) map[string]int {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	found := map[string]int{}
	scan := bufio.NewScanner(bytes.NewReader(l.buf.Bytes()))
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		var fields map[string]any
		if err := json.Unmarshal(scan.Bytes(), &fields); err != nil {
			t.Fatal(err)
		}
		if id, ok := fields[logkeys.AuditID].(string); ok {
			found[id]++
		}
		if n := len(scan.Bytes()); n > most {
			t.Errorf("a line of %d bytes: %.300s", n, scan.Bytes())
		}
	}
	if err := scan.Err(); err != nil {
		t.Fatal(err)
	}
	return found
}

// What a caller can make the diagnostic log say, it must pay for from its budget of records.
func TestADiagnosticLineIsOfACallWithARecordOfItsOwn(t *testing.T) {
	long := intruder
	long.Process.Exe = "/" + strings.Repeat("\x01", 3800)
	for name, c := range map[string]struct {
		who  caller.Caller
		does func(context.Context, v1.FilesystemClient, int)
	}{
		"stranger": {long, func(ctx context.Context, c v1.FilesystemClient, _ int) {
			_, _ = c.Mkdir(ctx, &v1.MkdirRequest{Path: `C:\a`})
		}},
		"stranger with paths": {long, func(ctx context.Context, c v1.FilesystemClient, i int) {
			_, _ = c.Mkdir(ctx, &v1.MkdirRequest{Path: fmt.Sprint(`C:\`, i, strings.Repeat("\x01", 15000))})
		}},
		"caller that a rule names": {driver, func(ctx context.Context, c v1.FilesystemClient, _ int) {
			_, _ = c.Rmdir(ctx, &v1.RmdirRequest{Path: `C:\a`})
		}},
		"panic": {driver, func(ctx context.Context, c v1.FilesystemClient, _ int) {
			_, _ = c.Mkdir(ctx, &v1.MkdirRequest{Path: `C:\a`})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var diagnostics lines
			f := start(t, "unix", func(o *Options) { o.Log = diagnostics.log() })
			strict(f, 20)
			f.handler(func(context.Context, *apiserver.Call) (proto.Message, error) { panic("value") })
			f.peers.set(func(p *fakePeers) { p.identity = c.who })
			for range 30 {
				client := v1.NewFilesystemClient(f.client(t, "filesystem-v1"))
				for i := range 5 {
					c.does(within(t), client, i)
				}
			}
			if err := f.stop(); err != nil {
				t.Fatal(err)
			}
			own := map[string]bool{}
			for _, e := range f.log.all() {
				if terminal(e) && !summary(e) {
					own[e.ID] = true
				}
			}
			said := diagnostics.calls(t, 8<<10)
			for id := range said {
				if !own[id] {
					t.Errorf("a line about the call %s, which has no record of its own", id)
				}
			}
			if len(said) == 0 || len(own) == 0 {
				t.Errorf("%d calls have lines, %d have records", len(said), len(own))
			}
		})
	}
}
