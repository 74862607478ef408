package pipepath

import (
	"regexp"
	"strings"
	"testing"
)

// plainLinux is what the webhook is not asked about (matchConditions of its configuration): absolute paths with slashes, of
// characters that need no escape, whose segments do not end in a dot. The host paths of Linux pods look like this.
var plainLinux = regexp.MustCompile(`^(/[A-Za-z0-9._+@-]*[A-Za-z0-9_+@-])+/?$`)

func isPlainLinux(path string) bool {
	low := strings.ToLower(path)
	for _, head := range []string{"/device", "/windows", "/etc/kubernetes", "/program", "/users", "/global", "/dosdevices", "/sessions", "/silos"} {
		if strings.HasPrefix(low, head) {
			return false
		}
	}
	return plainLinux.MatchString(path) && !strings.Contains(path, "..") && low != "/etc" && low != "/etc/"
}

// FuzzPlainLinuxPathsNeverMatch asks of subPaths only that they have no dot-dot: no kubelet mounts those.
func FuzzPlainLinuxPathsNeverMatch(f *testing.F) {
	for _, path := range []string{"/", "/.", "/./windows", "/x", "/etc/cni/net.d", "/etc", "/etc./kubernetes", "/var/lib/kubelet/", "/Windows", "/device/namedpipe/csi-proxy"} {
		for _, subPath := range []string{"", "x", `Windows`, `kubernetes`, `??\pipe\csi-proxy`, `\\.\pipe\csi-proxy`, `C:\Windows`, `WINDOW~1`, "\x00"} {
			f.Add(path, subPath)
		}
	}
	for _, path := range seeds(f) {
		f.Add(path, "x")
		f.Add("/x", path)
	}
	g, p := defaultGuard(f), defaultPowers(f)
	f.Fuzz(func(t *testing.T, path, subPath string) {
		if !isPlainLinux(path) || strings.Contains(subPath, "..") || unspeakable(subPath) {
			return
		}
		if v := g.JudgeMount(path, subPath); v.Match {
			t.Errorf("%+q and %+q: %+v", path, subPath, v)
		}
		if power := p.JudgeMount(path, subPath); power != PowerNone {
			t.Errorf("%+q and %+q have the power %q", path, subPath, power)
		}
	})
}
