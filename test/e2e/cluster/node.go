//go:build e2e

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/test/harness"
)

// NodeName is the name of the one node.
const NodeName = "node"

const containerdConfig = `version = 3
root = '/var/lib/containerd'
state = '/run/containerd'
[grpc]
address = '/run/containerd/containerd.sock'
[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = '%s'
[plugins.'io.containerd.cri.v1.runtime']
# Lowering a score takes CAP_SYS_RESOURCE, which containers for builds lack.
restrict_oom_score_adj = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = ['%s']
conf_dir = '%s'
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
runtime_type = 'io.containerd.runc.v2'
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
BinaryName = '%s'
SystemdCgroup = false
`

const podNetwork = `{"cniVersion": "1.0.0", "name": "pods", "plugins": [{
  "type": "bridge", "bridge": "cni0", "isGateway": true, "hairpinMode": true,
  "ipam": {"type": "host-local", "ranges": [[{"subnet": "` + podNet + `"}]], "routes": [{"dst": "0.0.0.0/0"}]}
}]}`

const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: %[1]q}}
authorization: {mode: Webhook}
tlsCertFile: %[2]q
tlsPrivateKeyFile: %[3]q
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
staticPodPath: %[4]q
cgroupDriver: cgroupfs
cgroupRoot: /%[5]s
failCgroupV1: false
failSwapOn: false
oomScoreAdj: 0
# What changes in a ConfigMap is to reach pods in seconds, and files of static pods likewise.
syncFrequency: 5s
fileCheckFrequency: 2s
nodeStatusUpdateFrequency: 5s
# A disk that others fill is no reason to evict anything.
evictionHard: {memory.available: 100Mi, nodefs.available: 0%%, imagefs.available: 0%%, nodefs.inodesFree: 0%%}
imageGCHighThresholdPercent: 100
resolvConf: ""
clusterDNS: [` + nodeIP + `]
clusterDomain: ` + clusterDomain + `
`

// startNode starts containerd and the kubelet and waits until the kubelet answers. It is also how a stopped node starts again.
func (c *Cluster) startNode(ctx context.Context) (err error) {
	if c.containerd, err = c.start("containerd", "--config", c.path("containerd.toml"), "--log-level=warn"); err != nil {
		return err
	}
	err = c.containerd.Await(ctx, startLimit, func(ctx context.Context) error {
		_, err := c.ctr(ctx, "version")
		return err
	})
	if err != nil {
		return err
	}
	c.kubelet, err = c.start("kubelet", "--config", c.path("kubelet.yaml"), "--kubeconfig", c.ca.file("node.conf"),
		"--node-ip="+nodeIP, "--hostname-override="+NodeName, "--v=2")
	return err
}

// configureNode writes the files that containerd and the kubelet read.
func (c *Cluster) configureNode() error {
	if err := makeGroups(groupName(c.dir)); err != nil {
		return err
	}
	for _, dir := range []string{"cni", "manifests"} {
		if err := os.Mkdir(c.path(dir), 0o700); err != nil {
			return err
		}
	}
	return errors.Join(
		c.writeFile("cni/10-pods.conflist", podNetwork),
		c.writeFile("containerd.toml", fmt.Sprintf(containerdConfig, ProgramImage, plugins, c.path("cni"), filepath.Join(harness.Tools(), "runc"))),
		c.writeFile("kubelet.yaml", fmt.Sprintf(kubeletConfig,
			c.ca.file("ca.crt"), c.ca.file("kubelet.crt"), c.ca.file("kubelet.key"), c.path("manifests"), groupName(c.dir))),
	)
}

// AwaitNode waits until the node is ready and its kubelet has said since then that it lives.
func (c *Cluster) AwaitNode(ctx context.Context, since time.Time) error {
	return c.kubelet.Await(ctx, startLimit, func(ctx context.Context) error {
		var lease coordinationv1.Lease
		if err := c.Client.Get(ctx, client.ObjectKey{Namespace: corev1.NamespaceNodeLease, Name: NodeName}, &lease); err != nil {
			return err
		}
		if lease.Spec.RenewTime == nil || lease.Spec.RenewTime.Time.Before(since) {
			return errors.New("the node has not said that it lives")
		}
		var node corev1.Node
		if err := c.Client.Get(ctx, client.ObjectKey{Name: NodeName}, &node); err != nil {
			return err
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return errors.New("the node is not ready")
	})
}

// StartNode starts containerd and the kubelet after StopNode.
func (c *Cluster) StartNode(ctx context.Context) error { return c.startNode(ctx) }

// StopNode ends kubelet, containerd and every container at once, as when a machine loses its power. The API server goes on.
func (c *Cluster) StopNode(ctx context.Context) error {
	c.kubelet.Kill()
	c.containerd.Kill()
	err := harness.Await(ctx, startLimit, func(context.Context) error {
		left := c.containers()
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
		}
		if len(left) > 0 {
			return fmt.Errorf("processes %v still run", left)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("kill all containers: %w", err)
	}
	return errors.Join(clearRun(), removeGroups(filepath.Join(groupName(c.dir), "kubepods")))
}

// clearRun removes what would be gone after a start of the machine: the state of containerd with its mounts. (The same goes
// for control groups: the kubelet would look at each of them for seconds.)
func clearRun() error {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	var at []string
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 4 &&
			(strings.HasPrefix(fields[4], "/run/") || strings.HasPrefix(fields[4], "/var/lib/kubelet/")) {
			at = append(at, fields[4])
		}
	}
	for i := len(at) - 1; i >= 0; i-- { // those inside others come later
		_ = syscall.Unmount(at[i], syscall.MNT_DETACH) // removing the directories tells whether it worked
	}
	return errors.Join(os.RemoveAll("/run/containerd"), os.RemoveAll("/run/netns"))
}

// containers lists the processes of containers and those that hold them, which are the children of containerd.
func (c *Cluster) containers() (pids []int) {
	entries, _ := os.ReadDir("/proc") // a /proc that cannot be read has no process for anyone
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		group, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid)) // a process that has ended
		exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		if strings.Contains(string(group), "/"+groupName(c.dir)+"/") || filepath.Base(exe) == "containerd-shim-runc-v2" {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Kill ends every process with the name in the containers at once, without a word to containerd, and says how many.
func (c *Cluster) Kill(name string) (killed int) {
	for _, pid := range c.containers() {
		comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)) // a process that has ended
		if strings.TrimSpace(string(comm)) == name && syscall.Kill(pid, syscall.SIGKILL) == nil {
			killed++
		}
	}
	return killed
}

// WriteStaticPod puts a file into the directory from which the kubelet makes pods without asking the API server.
func (c *Cluster) WriteStaticPod(name, content string) error {
	return c.writeFile(filepath.Join("manifests", name+".yaml"), content)
}

// RemoveStaticPod takes it away again.
func (c *Cluster) RemoveStaticPod(name string) error {
	return os.Remove(c.path(filepath.Join("manifests", name+".yaml")))
}
