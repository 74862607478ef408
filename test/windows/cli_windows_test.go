package windows

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/test/harness"
)

// pipeguard runs the command line and returns what it printed and its exit code.
func pipeguard(t *testing.T, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	command := exec.CommandContext(bounded(t), environment(t, "PIPEGUARD_CLI"), args...) //nolint:gosec // the program under test
	command.Stdin = strings.NewReader(stdin)
	stdout, stderr, code, err := harness.Run(command)
	if err != nil {
		t.Fatal(err)
	}
	return stdout, stderr, code
}

func request(t *testing.T, path string) string {
	t.Helper()
	text, err := json.Marshal(map[string]string{"path": path})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTheCommandLineCallsAndReadsTheRecords(t *testing.T) {
	p := start(t)
	p.mkdir("there")
	for path, exists := range map[string]string{"there": "true", "nowhere": "false"} {
		stdout, stderr, code := pipeguard(t, request(t, p.path(path)), "call", "--pipe", "filesystem-v1", "PathExists", "-")
		if code != 0 || !strings.Contains(stdout, `"exists": `+exists) {
			t.Errorf("%s: exit code %d, %s%s", path, code, stdout, stderr)
		}
	}
	for name, c := range map[string]struct {
		args []string
		path string
		code int
		want string
	}{
		"an operation that is not its own": {[]string{"--pipe", "filesystem-v1", "Rmdir", "-"}, p.path("there"), 1, "PermissionDenied"},
		"a pipe that is not its own":       {[]string{"--pipe", "filesystem-v1alpha1", "PathExists", "-"}, p.path("there"), 1, "PermissionDenied"},
		"a path outside":                   {[]string{"--pipe", "filesystem-v1", "PathExists", "-"}, filepath.Dir(p.kubelet), 1, "InvalidArgument"},
		"a pipe that is not served":        {[]string{"--pipe", "volume-v1", "ListVolumesOnDisk", "{}"}, "", 1, "volume-v1"},
		"a method that nobody has":         {[]string{"--pipe", "filesystem-v1", "Format", "-"}, p.path("there"), 2, "Format"},
	} {
		t.Run(name, func(t *testing.T) {
			_, stderr, code := pipeguard(t, request(t, c.path), append([]string{"call"}, c.args...)...)
			if code != c.code || !strings.Contains(stderr, c.want) {
				t.Errorf("exit code %d, want %d with %q: %s", code, c.code, c.want, stderr)
			}
		})
	}
	if !p.has("there") {
		t.Error("a denied call removed the directory")
	}
	p.terminal("/v1.Filesystem/Rmdir", p.path("there")) // the last record may be on its way
	stdout, stderr, code := pipeguard(t, "", "audit", "show", p.records)
	if code != 0 || !strings.Contains(stdout, "Rmdir") || !strings.Contains(stdout, "pipeguard.exe[") {
		t.Errorf("exit code %d, %s%s", code, stdout, stderr)
	}
	// While it is being written: nothing is wrong with it, and nobody else has a checkpoint.
	stdout, stderr, code = pipeguard(t, "", "audit", "verify", p.records, "--keys", p.records+"-signing.key.pub")
	if code != 3 || !strings.HasPrefix(stdout, "incomplete: ") {
		t.Errorf("exit code %d, %s%s", code, stdout, stderr)
	}
	stdout, stderr, code = pipeguard(t, "", "audit", "search", p.records, "--method", "Rmdir", "--decision", "deny")
	if code != 0 || !strings.Contains(stdout, "Rmdir") {
		t.Errorf("exit code %d, %s%s", code, stdout, stderr)
	}
}

func TestTheCommandLineJudgesAsOnLinux(t *testing.T) {
	const pod = `apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop}
spec:
  containers: [{name: web, image: web, volumeMounts: [{name: pipe, mountPath: pipe}]}]
  volumes: [{name: pipe, hostPath: {path: '//?/GLOBALROOT/Device/NamedPipe/CSI-Proxy-Disk-V1'}}]
`
	if stdout, stderr, code := pipeguard(t, pod, "review", "-f", "-"); code != 1 || !strings.Contains(stdout, "PG001") {
		t.Errorf("exit code %d, %s%s", code, stdout, stderr)
	}
	const want = `"kind":"pipe","canonical":"\\\\.\\pipe\\csi-proxy-disk-v1","match":true}`
	if stdout, stderr, code := pipeguard(t, "", "canonical", `\\LOCALHOST\pipe\CSI-Proxy-Disk-V1`); code != 0 || !strings.Contains(stdout, want) {
		t.Errorf("exit code %d, %s%s", code, stdout, stderr)
	}
}
