package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/internal/proxy/raw"
	"github.com/pipeguard/pipeguard/test/harness"
)

// codesOfOperations are refused by the built-in request policy to whoever is not named, each with its code.
var codesOfOperations = map[string]string{
	"system.StartService": "PN001", "system.StopService": "PN001", "disk.PartitionDisk": "PN002", "disk.SetDiskState": "PN003", "volume.FormatVolume": "PN004",
}

// The list allows this program everything. The request policy refuses what destroys, in whatever version and by whatever name.
func TestNoVersionEvadesTheRequestPolicy(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "proxy.yaml")
	harness.Replace(t, config, checkHead+fmt.Sprintf("acl:\n  rules:\n    - {name: all, pipes: [\"disk-*\", \"volume-*\", \"system-*\"], operations: [\"*\"], callers: [{user: \"uid:%d\", exe: %q}]}\n", os.Getuid(), exe))
	p := startProgram(t, "--config", config)
	apis, err := apiserver.Load("disk", "volume", "system")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, api := range apis {
		conn := p.client(t, api.GroupVersion().String())
		for _, m := range api.Methods() {
			code, guarded := codesOfOperations[m.Operation.Group+"."+m.Operation.Name]
			if !guarded {
				continue
			}
			seen[code]++
			for _, name := range []string{m.FullMethod, m.FullMethod + "/", strings.ToLower(m.FullMethod), strings.Replace(m.FullMethod, "/v", "//v", 1)} {
				// The first field is the disk, volume or service "1"; where that is a number, it is 0 and this is unknown. A
				// disk is to be taken offline.
				sent, got := raw.Message{0x0a, 1, '1'}, raw.Message(nil)
				err := conn.Invoke(t.Context(), name, &sent, &got, grpc.ForceCodecV2(raw.Codec{}))
				switch {
				case name == m.FullMethod && (status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), code+": ")):
					t.Errorf("%s: %v, want %s", name, err, code)
				case name != m.FullMethod && status.Code(err) != codes.Unimplemented:
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	}
	if seen["PN001"] != 2 || seen["PN002"] < 5 || seen["PN003"] < 3 || seen["PN004"] < 6 {
		t.Errorf("asked for %v", seen)
	}
	for _, e := range records(t, filepath.Join(p.sockets, "audit"), func(e audit.Event) bool { return e.IntentSeq != 0 }) {
		t.Errorf("%s ran", e.What.FullMethod)
	}
}
