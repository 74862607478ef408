//go:build e2e

package cluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/pipeguard/pipeguard/test/harness"
)

// programs are what test/tools/build cluster makes.
var programs = []string{
	"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl",
	"containerd", "containerd-shim-runc-v2", "ctr", "runc", "helm",
}

// plugins holds the CNI plugins of Debian's containernetworking-plugins.
const plugins = "/usr/lib/cni"

// missing names what a cluster needs and this machine does not have.
func missing() (parts []string) {
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		parts = append(parts, "root on Linux")
	}
	for _, p := range programs {
		if _, err := os.Stat(filepath.Join(harness.Tools(), p)); err != nil {
			parts = append(parts, p+" (test/tools/build cluster)")
		}
	}
	if _, err := os.Stat(WebhookArchive()); err != nil {
		parts = append(parts, "the webhook's image (make image)")
	}
	for _, p := range []string{"bridge", "host-local", "loopback"} {
		if _, err := os.Stat(filepath.Join(plugins, p)); err != nil {
			parts = append(parts, "the CNI plugin "+p+" (apt-get install containernetworking-plugins)")
		}
	}
	for _, p := range []string{"ip", "iptables", "conntrack", "go"} {
		if _, err := exec.LookPath(p); err != nil {
			parts = append(parts, p)
		}
	}
	if _, err := os.Stat("/sys/fs/cgroup/memory/cgroup.procs"); err != nil {
		if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err != nil {
			parts = append(parts, "control groups")
		}
	}
	return parts
}

// WebhookArchive is the webhook's image as `make image` leaves it.
func WebhookArchive() string {
	return filepath.Join(harness.Root(), "dist", "pipeguard-webhook.oci.tar")
}

// refusal says in one line what is missing, and how the run is to end: as a failure where every part is expected.
func refusal(parts []string) (line string, code int) {
	line = "test/e2e: NOT RUN, nothing was tested on a whole cluster: missing " + strings.Join(parts, ", ")
	if os.Getenv("CI") == "true" {
		return line, 1
	}
	return line, 0
}
