package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/test/harness"
)

// smallDisk mounts a file system of this many bytes, and returns what fills it and what empties it again.
func smallDisk(t *testing.T, size int) (dir string, fill, empty func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: mounting a file system needs root")
	}
	dir = t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=700", size)); err != nil {
		t.Skipf("SKIPPED: mount a file system: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	ballast := filepath.Join(dir, "ballast")
	fill = func() {
		file, err := os.OpenFile(ballast, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) //nolint:gosec // of the test
		if err != nil {
			t.Fatal(err)
		}
		for chunk := 1 << 20; chunk > 0; {
			if _, err := file.Write(make([]byte, chunk)); err != nil {
				chunk /= 2
			}
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	empty = func() {
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
	}
	return dir, fill, empty
}

// awaitReadiness asks until the answer is the code.
func awaitReadiness(t *testing.T, p *program, code int) (text string) {
	t.Helper()
	for began := time.Now(); time.Since(began) < attackPatience; time.Sleep(10 * time.Millisecond) {
		var got int
		if got, text = p.get(t, "/readyz"); got == code {
			return text
		}
	}
	t.Fatalf("/readyz does not answer %d, but %q", code, text)
	return ""
}

func TestAFullDiskShowsAndWhatIsLostIsCounted(t *testing.T) {
	dir, fill, empty := smallDisk(t, 24<<20)
	config := configFor(t, "PathExists")
	harness.Replace(t, config, read(t, config)+"audit: {segmentMiB: 1, operations: 16}\n")
	log := filepath.Join(dir, "audit")
	p := startProgram(t, "--config", config, "--audit-log", log, "-metrics-bind-address", "127.0.0.1:0")
	driver := v1.NewFilesystemClient(p.client(t, "filesystem-v1"))
	call := func() codes.Code {
		_, err := driver.PathExists(t.Context(), &v1.PathExistsRequest{Path: `C:\var\lib\kubelet\plugins\a`})
		return status.Code(err)
	}
	attempts := 0
	untilRefused := func() {
		attempts++
		fill()
		for began := time.Now(); call() == codes.OK; {
			if time.Since(began) > attackPatience {
				t.Fatal("calls are taken on a full disk")
			}
		}
	}
	for range 2 {
		// What a refused call would have taken can be enough for the next one, when another call's end was not written yet.
		for began := time.Now(); time.Since(began) < attackPatience; time.Sleep(50 * time.Millisecond) {
			untilRefused()
			if code, _ := p.get(t, "/readyz"); code == 503 {
				break
			}
		}
		if text := awaitReadiness(t, p, 503); !strings.Contains(text, "no space for the records of another operation") {
			t.Errorf("/readyz says %q", text)
		}
		if _, text := p.get(t, "/metrics"); !strings.Contains(text, "pipeguard_audit_up 0") || !strings.Contains(text, "pipeguard_audit_signed 1") {
			t.Error("the metrics do not say that the log is full, and signed")
		}
		empty()
		awaitReadiness(t, p, 200) // nobody calls
		if _, text := p.get(t, "/metrics"); !strings.Contains(text, "pipeguard_audit_up 1") {
			t.Error("the metrics do not say that the log works again")
		}
		if code := call(); code != codes.OK {
			t.Errorf("a call when there is room again: %v", code)
		}
	}
	events := func(number string) int { return strings.Count(p.stderr.String(), `"event":`+number) }
	// What one call gives back can be enough for another, so that one attempt can have several faults and recoveries.
	if faults, recoveries := events("150"), events("151"); recoveries < 2 || recoveries > faults || faults > 20*attempts {
		t.Errorf("event 150 came %d times and event 151 %d times in %d attempts, want one for each fault and each recovery", faults, recoveries, attempts)
	}
	untilRefused()
	before, refused := events("150"), 1
	for range 600 {
		if call() == codes.Unavailable {
			refused++
		}
	}
	if n := events("150") - before; n > 60 {
		t.Errorf("event 150 came %d times in %d calls that were refused", n, refused)
	}
	p.stop()
	said, counted := uint64(0), uint64(0)
	for _, e := range records(t, log, func(audit.Event) bool { return true }) {
		switch {
		case e.Log != nil && e.Stage == audit.StageLogClose:
			said += e.Log.Unwritten
		case e.Type == audit.TypeRequest && e.Outcome != nil && e.Outcome.Code == "Unavailable":
			counted += e.Count()
		}
	}
	if said == 0 || said+counted < uint64(refused)+2 { //nolint:gosec // two were refused before
		t.Errorf("%d calls were refused on a full disk: the records stand for %d, and the last one says that %d are missing", refused+2, counted, said)
	}
}
