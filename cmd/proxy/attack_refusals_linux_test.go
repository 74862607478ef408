package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	"github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1beta2"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/test/harness"
)

// floodOf calls what is denied from eight connections at once for a while, making new ones when they are cut off, and
// returns how many calls were denied one by one, and how many had another end.
func floodOf(t *testing.T, p *program, length time.Duration) (denied, other int64) {
	t.Helper()
	var d, o atomic.Int64
	ctx, stop := context.WithTimeout(t.Context(), length)
	defer stop()
	var flood sync.WaitGroup
	for range 8 {
		flood.Go(func() {
			for ctx.Err() == nil {
				conn := p.client(t, "filesystem-v1beta2")
				c := v1beta2.NewFilesystemClient(conn)
				for i := 0; ctx.Err() == nil; i++ {
					_, err := c.Rmdir(ctx, &v1beta2.RmdirRequest{Path: fmt.Sprintf(`C:\var\lib\kubelet\plugins\%d`, i), Force: true})
					if status.Code(err) != codes.PermissionDenied {
						o.Add(1)
						break
					}
					d.Add(1)
				}
				_ = conn.Close()
			}
		})
	}
	flood.Wait()
	return d.Load(), o.Load()
}

// sizeOfLog is what the segments of a log take together.
func sizeOfLog(t *testing.T, dir string) (size int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".jsonl") {
			var info os.FileInfo
			if info, err = d.Info(); err == nil {
				size += info.Size()
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return size
}

// namedOnOnePipe is a proxy whose rules name this program on one pipe and not on another, with these settings of the log.
func namedOnOnePipe(t *testing.T, settings string) *program {
	t.Helper()
	config := configFor(t, "PathExists")
	harness.Replace(t, config, strings.ReplaceAll(read(t, config), `"filesystem-*"`, `"filesystem-v1"`)+"  limits: {callsPerSecond: 100}\naudit: {"+settings+"}\n")
	return startProgram(t, "--config", config)
}

func TestAFloodOfRefusalsNeitherFillsTheLogNorErasesIt(t *testing.T) {
	p := namedOnOnePipe(t, "noSync: true, segmentMiB: 1, keepMiB: 4")
	log := filepath.Join(p.sockets, "audit")
	driver := v1.NewFilesystemClient(p.client(t, "filesystem-v1"))
	deed := func(name string) {
		t.Helper()
		if _, err := driver.PathExists(t.Context(), &v1.PathExistsRequest{Path: `C:\var\lib\kubelet\plugins\` + name}); err != nil {
			t.Errorf("a call that a rule allows: %v", err)
		}
	}
	deed("before")
	denied, other := floodOf(t, p, 3*time.Second)
	size := sizeOfLog(t, log)
	t.Logf("%d calls denied one by one, %d ended in another way, %d bytes of records", denied, other, size)
	deed("after")
	if size > 1<<20 {
		t.Errorf("a flood of 3 s made %d bytes of records", size)
	}
	if code := p.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	var requests, connections uint64
	named := map[string]int{}
	for _, e := range records(t, log, func(e audit.Event) bool { return e.Type != audit.TypeLog }) {
		if e.Type == audit.TypeConnection {
			connections += e.Count()
		} else if e.Outcome != nil && e.What.Pipe == "csi-proxy-filesystem-v1beta2" {
			requests += e.Count()
		}
		for _, target := range e.What.Targets {
			named[target.Value]++
		}
	}
	if requests < uint64(denied) || connections < uint64(other)/2 { //nolint:gosec // counts
		t.Errorf("the records stand for %d requests and %d connections", requests, connections)
	}
	for _, name := range []string{"before", "after"} {
		if named[`C:\var\lib\kubelet\plugins\`+name] != 2 {
			t.Errorf("the deed %q has %d records", name, named[`C:\var\lib\kubelet\plugins\`+name])
		}
	}
}
