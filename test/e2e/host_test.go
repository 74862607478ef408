//go:build e2e

package e2e_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/test/harness"
)

// asHostProcess makes the pod's containers HostProcess containers under a Windows account.
func asHostProcess(runAsUserName string) change {
	return func(p *corev1.Pod) {
		p.Spec.HostNetwork = true
		p.Spec.SecurityContext = &corev1.PodSecurityContext{WindowsOptions: &corev1.WindowsSecurityContextOptions{HostProcess: new(true), RunAsUserName: &runAsUserName}}
	}
}

const localSystem = `NT AUTHORITY\SYSTEM`

// hostDriverPod is the driver as newer releases ship it: without pipes, on the node itself.
func hostDriverPod(name string, changes ...change) *corev1.Pod {
	return pod(driverNamespace, name, append([]change{as(driverAccount, driverContainer), of(driverImage), onWindows, tolerant, asHostProcess(localSystem)}, changes...)...)
}

// nodesAreForSubjects sets what reaches a node without a pipe to Deny. The driver's profile is on.
func nodesAreForSubjects(t *testing.T) {
	others := pod("default", "others", onWindows, asHostProcess(localSystem))
	plugins := pod("default", "plugins", onWindows, mounts(`C:\var\lib\kubelet\plugins`))
	mustAdmit(t, daemonSet(others)) // by default they are recorded
	mustAdmit(t, daemonSet(plugins))
	remove(t, daemonSet(others))
	remove(t, daemonSet(plugins))

	before, err := replicaRevisions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	upgrade(t, "--set", "parameters.hostProcess=Deny,parameters.hostPaths=Deny,parameters.equalPower=Deny")
	defer upgrade(t, "--set", "parameters.hostProcess=Audit,parameters.hostPaths=Audit,parameters.equalPower=Audit")
	harness.Eventually(t, readyLimit, "every replica has the parameters", haveMoved(before))

	driver := daemonSet(hostDriverPod("host-driver"))
	mustAdmit(t, driver)
	remove(t, driver)
	mustRefuse(t, daemonSet(hostDriverPod("another-image", of("registry.example/azuredisk-csi:v1.34.0"))), "PG005", "image: want")
	mustRefuse(t, daemonSet(hostDriverPod("another-windows-account", asHostProcess("ContainerAdministrator"))), "PG005", "runAsUserName: want")
	mustRefuse(t, daemonSet(hostDriverPod("another-container", as(driverAccount, "shell"))), "PG005")
	mustRefuse(t, others, "PG005")
	mustRefuse(t, plugins, "PG011", `beneath guarded host path`)
	mustRefuse(t, pod("default", "network-plugins", mounts("/opt/cni/bin")), "PG011")

	network := daemonSet(pod("default", "linux-network", mounts("/opt/cni/bin"), mounts("/etc/cni/net.d"), mounts("/"), onLinux))
	mustAdmit(t, network)
	harness.Eventually(t, readyLimit, "a network plugin of Linux runs", ready("default", 1, client.MatchingLabels{"daemon": "linux-network"}))
	remove(t, network)
}
