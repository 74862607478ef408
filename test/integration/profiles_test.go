//go:build !windows

package integration

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// publishedPod is a pod as a published manifest has it, as far as admission asks. Container names that end in "+" are init containers.
type publishedPod struct {
	source, namespace, account string
	runAs                      string // of HostProcess pods
	containers                 map[string]publishedContainer
}

type publishedContainer struct {
	image  string
	mounts []string
}

const system = `NT AUTHORITY\SYSTEM`

func pipes(names ...string) (paths []string) {
	for _, name := range names {
		paths = append(paths, `\\.\pipe\csi-proxy-`+name)
	}
	return paths
}

// publishedPods are written from the manifests and not from the files of the chart, in their own spelling of paths and accounts.
var publishedPods = map[string]publishedPod{
	"azuredisk, pipes": {"https://github.com/kubernetes-sigs/azuredisk-csi-driver/blob/087bb5d81d98b29f671e79d3b703158702fdaa1a/deploy/csi-azuredisk-node-windows.yaml",
		"kube-system", "csi-azuredisk-node-sa", "", map[string]publishedContainer{
			"liveness-probe":        {"mcr.microsoft.com/oss/kubernetes-csi/livenessprobe:v2.3.0", []string{`C:\var\lib\kubelet\plugins\disk.csi.azure.com\`}},
			"node-driver-registrar": {"mcr.microsoft.com/oss/kubernetes-csi/csi-node-driver-registrar:v2.2.0", []string{`C:\var\lib\kubelet\`, `C:\var\lib\kubelet\plugins\disk.csi.azure.com\`, `C:\var\lib\kubelet\plugins_registry\`}},
			"azuredisk": {"mcr.microsoft.com/k8s/csi/azuredisk-csi:latest", append(pipes("filesystem-v1", "disk-v1", "volume-v1", "filesystem-v1beta1", "disk-v1beta2", "volume-v1beta2"),
				`C:\var\lib\kubelet\`, `C:\var\lib\kubelet\plugins\disk.csi.azure.com\`, `C:\k`)},
		}},
	"azuredisk, HostProcess": {"https://github.com/kubernetes-sigs/azuredisk-csi-driver/blob/74c6f852de0aeb00c01541aae235f6594b316123/deploy/v1.30.0/csi-azuredisk-node-windows-hostprocess.yaml",
		"kube-system", "csi-azuredisk-node-sa", system, map[string]publishedContainer{
			"init+":                 {"mcr.microsoft.com/oss/kubernetes-csi/azuredisk-csi:v1.30.0-windows-hp", nil},
			"node-driver-registrar": {"mcr.microsoft.com/oss/kubernetes-csi/csi-node-driver-registrar:v2.10.0", nil},
			"azuredisk":             {"mcr.microsoft.com/oss/kubernetes-csi/azuredisk-csi:v1.30.0-windows-hp", nil},
		}},
	"azuredisk, HostProcess, v1.34": {"https://github.com/kubernetes-sigs/azuredisk-csi-driver/blob/f41d84931dba645c397e9919eb75dd08c7e7b099/charts/v1.34.0/azuredisk-csi-driver/values.yaml",
		"kube-system", "csi-azuredisk-node-sa", system, map[string]publishedContainer{
			"init+":                 {"mcr.microsoft.com/oss/v2/kubernetes-csi/azuredisk-csi:v1.34.0-windows-hp", nil},
			"node-driver-registrar": {"mcr.microsoft.com/oss/v2/kubernetes-csi/csi-node-driver-registrar:v2.15.0", nil},
			"azuredisk":             {"mcr.microsoft.com/oss/v2/kubernetes-csi/azuredisk-csi:v1.34.0-windows-hp", nil},
		}},
	"azurefile, pipes": {"https://github.com/kubernetes-sigs/azurefile-csi-driver/blob/2f33fe6b6beddcbab0fad4b8d04fdcb90c8068f4/deploy/v1.30.0/csi-azurefile-node-windows.yaml",
		"kube-system", "csi-azurefile-node-sa", "", map[string]publishedContainer{
			"liveness-probe":        {"mcr.microsoft.com/oss/kubernetes-csi/livenessprobe:v2.12.0", []string{`C:\var\lib\kubelet\plugins\file.csi.azure.com\`}},
			"node-driver-registrar": {"mcr.microsoft.com/oss/kubernetes-csi/csi-node-driver-registrar:v2.10.0", []string{`C:\var\lib\kubelet\`, `C:\var\lib\kubelet\plugins\file.csi.azure.com\`, `C:\var\lib\kubelet\plugins_registry\`}},
			"azurefile": {"mcr.microsoft.com/oss/kubernetes-csi/azurefile-csi:v1.30.0", append(pipes("filesystem-v1", "smb-v1", "filesystem-v1beta1", "smb-v1beta1"),
				`C:\var\lib\kubelet\`, `C:\var\lib\kubelet\plugins\file.csi.azure.com\`, `C:\k`)},
		}},
	"azurefile, HostProcess": {"https://github.com/kubernetes-sigs/azurefile-csi-driver/blob/0378be9877c556656826fa9ac328e7a2bb0d72cc/deploy/csi-azurefile-node-windows-hostprocess.yaml",
		"kube-system", "csi-azurefile-node-sa", system, map[string]publishedContainer{
			"init+":                 {"mcr.microsoft.com/oss/kubernetes-csi/azurefile-csi:v1.32.4-windows-hp", nil},
			"node-driver-registrar": {"mcr.microsoft.com/oss/v2/kubernetes-csi/csi-node-driver-registrar:v2.13.0", nil},
			"azurefile":             {"mcr.microsoft.com/oss/kubernetes-csi/azurefile-csi:v1.32.4-windows-hp", nil},
		}},
	"smb, pipes, v1.17": {"https://github.com/kubernetes-csi/csi-driver-smb/blob/760cf4819f7997ff8b416b6cf9ad0a3fce23de1b/deploy/v1.17.0/csi-smb-node-windows.yaml",
		"kube-system", "csi-smb-node-sa", "", map[string]publishedContainer{
			"liveness-probe":        {"registry.k8s.io/sig-storage/livenessprobe:v2.15.0", []string{`C:\var\lib\kubelet\plugins\smb.csi.k8s.io\`}},
			"node-driver-registrar": {"registry.k8s.io/sig-storage/csi-node-driver-registrar:v2.13.0", []string{`C:\var\lib\kubelet\`, `C:\var\lib\kubelet\plugins\smb.csi.k8s.io\`, `C:\var\lib\kubelet\plugins_registry\`}},
			"smb": {"registry.k8s.io/sig-storage/smbplugin:v1.17.0", append(pipes("filesystem-v1", "smb-v1", "filesystem-v1beta1", "smb-v1beta1"),
				`C:\var\lib\kubelet\`, `C:\var\lib\kubelet\plugins\smb.csi.k8s.io\`)},
		}},
	"smb, HostProcess": {"https://github.com/kubernetes-csi/csi-driver-smb/blob/6286cadc2cb3ec5df03434cd67a229fd010d15db/deploy/v1.18.0/csi-smb-node-windows-hostprocess.yaml",
		"kube-system", "csi-smb-node-sa", system, map[string]publishedContainer{
			"init+":                 {"registry.k8s.io/sig-storage/smbplugin:v1.18.0-windows-hp", nil},
			"node-driver-registrar": {"mcr.microsoft.com/oss/kubernetes-csi/csi-node-driver-registrar:v2.13.0", nil},
			"smb":                   {"registry.k8s.io/sig-storage/smbplugin:v1.18.0-windows-hp", nil},
		}},
	"aws-ebs, pipes": {"https://github.com/kubernetes-sigs/aws-ebs-csi-driver/blob/01dfa91ffd9ec947e7adcc24d2ddd06832a4c413/deploy/kubernetes/base/node-windows.yaml",
		"kube-system", "ebs-csi-node-sa", "", map[string]publishedContainer{
			"ebs-plugin": {"public.ecr.aws/ebs-csi-driver/aws-ebs-csi-driver:v1.49.0", append(pipes("disk-v1", "volume-v1", "filesystem-v1"),
				`C:\var\lib\kubelet`, `C:\var\lib\kubelet\plugins\ebs.csi.aws.com`)},
			"node-driver-registrar": {"public.ecr.aws/csi-components/csi-node-driver-registrar:v2.14.0-eksbuild.5", []string{`C:\var\lib\kubelet\plugins\ebs.csi.aws.com`, `C:\var\lib\kubelet\plugins_registry`}},
			"liveness-probe":        {"public.ecr.aws/csi-components/livenessprobe:v2.16.0-eksbuild.5", []string{`C:\var\lib\kubelet\plugins\ebs.csi.aws.com`}},
		}},
	"aws-ebs, HostProcess": {"https://github.com/kubernetes-sigs/aws-ebs-csi-driver/blob/037f445de44ddec911dde7169ddf19dbb620d746/charts/aws-ebs-csi-driver/templates/_node-windows.tpl",
		"kube-system", "ebs-csi-node-sa", system, map[string]publishedContainer{
			"ebs-plugin":            {"public.ecr.aws/ebs-csi-driver/aws-ebs-csi-driver:v1.49.0", []string{`C:\var\lib\kubelet`, `C:\var\lib\kubelet\plugins\ebs.csi.aws.com`}},
			"node-driver-registrar": {"public.ecr.aws/csi-components/csi-node-driver-registrar:v2.14.0-eksbuild.5", []string{`C:\var\lib\kubelet\plugins\ebs.csi.aws.com`, `C:\var\lib\kubelet\plugins_registry`}},
			"liveness-probe":        {"public.ecr.aws/csi-components/livenessprobe:v2.16.0-eksbuild.5", []string{`C:\var\lib\kubelet\plugins\ebs.csi.aws.com`}},
		}},
	"gce-pd, pipes": {"https://github.com/kubernetes-sigs/gcp-compute-persistent-disk-csi-driver/blob/19121e2dbc7fac37b603c91dc281e4dd03393b42/deploy/kubernetes/base/node_windows/node.yaml",
		"gce-pd-csi-driver", "csi-gce-pd-node-sa-win", "", map[string]publishedContainer{
			"csi-driver-registrar": {"registry.k8s.io/sig-storage/csi-node-driver-registrar:v2.9.0", []string{`\var\lib\kubelet\plugins\pd.csi.storage.gke.io`, `\var\lib\kubelet\plugins_registry`}},
			"gce-pd-driver": {"registry.k8s.io/cloud-provider-gcp/gcp-compute-persistent-disk-csi-driver:v1.20.0", append(pipes("volume-v1", "filesystem-v1", "disk-v1", "volume-v1beta1", "filesystem-v1beta1", "disk-v1beta2"),
				`\var\lib\kubelet\plugins\kubernetes.io\csi`, `\var\lib\kubelet\pods`, `\var\lib\kubelet\plugins\pd.csi.storage.gke.io`)},
		}},
	"vsphere, pipes": {"https://github.com/openshift/windows-machine-config-operator/blob/3f0be523f5cc89dc1d75ec1801b38623e7031024/hack/manifests/csi/vsphere/01-example-driver-daemonset.yaml",
		"vmware-system-csi", "vsphere-csi-node", "", map[string]publishedContainer{
			"node-driver-registrar": {"registry.k8s.io/sig-storage/csi-node-driver-registrar:v2.7.0", []string{`C:\var\lib\kubelet\plugins\csi.vsphere.vmware.com\`, `C:\var\lib\kubelet\plugins_registry\`}},
			"vsphere-csi-node": {"registry.k8s.io/csi-vsphere/driver:v3.3.0", append(pipes("volume-v1", "filesystem-v1", "disk-v1", "system-v1alpha1"),
				`\var\lib\kubelet`, `C:\var\lib\kubelet\plugins\csi.vsphere.vmware.com\`)},
			"liveness-probe": {"registry.k8s.io/sig-storage/livenessprobe:v2.9.0", []string{`C:\var\lib\kubelet\plugins\csi.vsphere.vmware.com\`}},
		}},
	"vsphere, HostProcess": {"https://github.com/kubernetes-sigs/vsphere-csi-driver/blob/743598a9051c6819af05b81a1d159bee9193c5c5/manifests/vanilla/vsphere-csi-driver.yaml",
		"vmware-system-csi", "vsphere-csi-node", system, map[string]publishedContainer{
			"node-driver-registrar": {"registry.k8s.io/sig-storage/csi-node-driver-registrar:v2.13.0", []string{`C:\var\lib\kubelet\plugins\csi.vsphere.vmware.com\`, `C:\var\lib\kubelet\plugins_registry\`}},
			"vsphere-csi-node":      {"registry.k8s.io/csi-vsphere/driver:v3.5.0", []string{`\var\lib\kubelet`, `C:\var\lib\kubelet\plugins\csi.vsphere.vmware.com\`}},
			"liveness-probe":        {"registry.k8s.io/sig-storage/livenessprobe:v2.15.0", []string{`C:\var\lib\kubelet\plugins\csi.vsphere.vmware.com\`}},
		}},
	"trident, pipes": {"https://github.com/NetApp/trident/blob/master/cli/k8s_client/yaml_factory.go",
		"trident", "trident-node-windows", "", map[string]publishedContainer{
			"trident-main": {"docker.io/netapp/trident:24.10.0", append(pipes("filesystem-v1", "volume-v1", "smb-v1", "filesystem-v1beta1", "smb-v1beta1"),
				`C:\var\lib\kubelet\`, `C:\var\lib\kubelet\plugins\csi.trident.netapp.io\`, `C:\var\lib\trident\tracking`)},
			"node-driver-registrar": {"registry.k8s.io/sig-storage/csi-node-driver-registrar:v2.5.1", []string{`C:\var\lib\kubelet\`, `C:\var\lib\kubelet\plugins\csi.trident.netapp.io\`, `C:\var\lib\kubelet\plugins_registry\`}},
			"liveness-probe":        {"registry.k8s.io/sig-storage/livenessprobe:v2.5.0", []string{`C:\var\lib\kubelet\plugins\csi.trident.netapp.io\`}},
		}},
	"kube-proxy": {"https://github.com/kubernetes-sigs/sig-windows-tools/blob/98215f415740bdfd0297b063d254c98fb9321991/hostprocess/flannel/kube-proxy/kube-proxy.yml",
		"kube-system", "kube-proxy", `NT AUTHORITY\system`, map[string]publishedContainer{
			"kube-proxy": {"sigwindowstools/kube-proxy:v1.24.2-flannel-hostprocess", nil},
		}},
	"flannel": {"https://github.com/kubernetes-sigs/sig-windows-tools/blob/06efd117064e1cf8e2afd054c82d58d176883101/hostprocess/flannel/flanneld/flannel-overlay.yml",
		"kube-system", "flannel", `NT AUTHORITY\system`, map[string]publishedContainer{
			"kube-flannel": {"sigwindowstools/flannel:v0.21.5-hostprocess", nil},
		}},
	"calico, operator": {"https://github.com/tigera/operator/blob/9065fe4a7173613b089a96ded3c20c42121d2b7b/pkg/render/windows.go",
		"calico-system", "calico-node", `NT AUTHORITY\system`, map[string]publishedContainer{
			"uninstall-calico+": {"docker.io/calico/node-windows:v3.28.1", []string{"/opt/cni/bin", "/etc/cni/net.d"}},
			"install-cni+":      {"docker.io/calico/cni-windows:v3.28.1", []string{"/opt/cni/bin", "/etc/cni/net.d"}},
			"node":              {"docker.io/calico/node-windows:v3.28.1", []string{"/var/run/calico", "/var/lib/calico", "/var/log/calico/cni", "/etc/cni/net.d"}},
			"felix":             {"docker.io/calico/node-windows:v3.28.1", []string{"/var/run/calico", "/var/lib/calico", "/var/log/calico/cni", "/etc/cni/net.d"}},
			"confd":             {"docker.io/calico/node-windows:v3.28.1", []string{"/var/run/calico", "/var/lib/calico", "/var/log/calico/cni", "/etc/cni/net.d"}},
		}},
	"calico, manifest": {"https://github.com/projectcalico/calico/blob/06522509daaa41e3f251279fb8c54fa2b1ed11c6/manifests/calico-windows-vxlan.yaml",
		"calico-system", "calico-node", `NT AUTHORITY\system`, map[string]publishedContainer{
			"install+": {"calico/windows:v3.25.2", nil},
			"node":     {"calico/windows:v3.25.2", nil},
			"felix":    {"calico/windows:v3.25.2", nil},
		}},
	"antrea": {"https://github.com/antrea-io/antrea/blob/022a450d16c7f4007ab2ba09bcecb8984ddfa892/build/yamls/antrea-windows-with-ovs.yml",
		"kube-system", "antrea-agent", system, map[string]publishedContainer{
			"install-cni+":        {"antrea/antrea-windows:v2.0.0", nil},
			"install-ovs-driver+": {"antrea/antrea-windows:v2.0.0", nil},
			"antrea-agent":        {"antrea/antrea-windows:v2.0.0", []string{"/var/log/antrea/"}},
			"antrea-ovs":          {"antrea/antrea-windows:v2.0.0", []string{"/var/log/antrea/"}},
		}},
	"azure-cns": {"https://github.com/Azure/azure-container-networking/blob/7165e215431c569c18afee3c587a7343d2b642a4/test/integration/manifests/cns/daemonset-windows.yaml",
		"kube-system", "azure-cns", system, map[string]publishedContainer{
			"cni-installer+": {"acnpublic.azurecr.io/cni-dropgz:v0.1.4", []string{"/k/azurecni/bin"}},
			"cns-container":  {"acnpublic.azurecr.io/azure-cns:v1.5.5", []string{"/k/azurecns", "/var/run/azure-vnet"}},
		}},
	"csi-proxy": {"https://github.com/kubernetes-sigs/sig-windows-tools/blob/8cb5dc764ee442b01fc8e49736c358afefc6183c/hostprocess/csi-proxy/csi-proxy.yaml",
		"kube-system", "", system, map[string]publishedContainer{
			"csi-proxy": {"ghcr.io/kubernetes-sigs/sig-windows/csi-proxy:v1.1.3", nil},
		}},
	"windows-exporter": {"https://github.com/prometheus-community/windows_exporter/blob/b450a501032136ffa5b4f22de90d656c83d9c9d8/kubernetes/windows-exporter-daemonset.yaml",
		"monitoring", "", `NT AUTHORITY\system`, map[string]publishedContainer{
			"configure-firewall+": {"mcr.microsoft.com/windows/nanoserver:1809", nil},
			"windows-exporter":    {"ghcr.io/prometheus-community/windows-exporter:latest", nil},
		}},
	"secrets-store": {"https://github.com/kubernetes-sigs/secrets-store-csi-driver/blob/f7ff1b2c626611297461dd1384028b8d47b94dd5/manifest_staging/deploy/secrets-store-csi-driver-windows.yaml",
		"kube-system", "secrets-store-csi-driver", "", map[string]publishedContainer{
			"node-driver-registrar": {"k8s.gcr.io/sig-storage/csi-node-driver-registrar:v2.5.1", []string{`C:\var\lib\kubelet\plugins\csi-secrets-store\`, `C:\var\lib\kubelet\plugins_registry\`}},
			"secrets-store":         {"k8s.gcr.io/csi-secrets-store/driver:v1.2.4", []string{`C:\var\lib\kubelet\plugins\csi-secrets-store\`, `C:\var\lib\kubelet\pods\`, `C:\k\secrets-store-csi-providers\`}},
			"liveness-probe":        {"k8s.gcr.io/sig-storage/livenessprobe:v2.7.0", []string{`C:\var\lib\kubelet\plugins\csi-secrets-store\`}},
		}},
}

// pod is as the DaemonSet's controller would make it. Containers come in the order of their names.
func (p publishedPod) pod() *corev1.Pod {
	made := named(&corev1.Pod{Spec: corev1.PodSpec{ServiceAccountName: p.account}}, p.namespace)
	if p.runAs != "" {
		made.Spec.HostNetwork = true
		made.Spec.SecurityContext = &corev1.PodSecurityContext{WindowsOptions: &corev1.WindowsSecurityContextOptions{HostProcess: new(true), RunAsUserName: new(p.runAs)}}
	}
	volumes := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(p.containers)) {
		name, isInit := strings.CutSuffix(key, "+")
		c := corev1.Container{Name: name, Image: p.containers[key].image}
		for _, path := range p.containers[key].mounts {
			if volumes[path] == "" {
				volumes[path] = fmt.Sprintf("v%d", len(volumes))
				made.Spec.Volumes = append(made.Spec.Volumes, corev1.Volume{Name: volumes[path], VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path}}})
			}
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volumes[path], MountPath: path})
		}
		if isInit {
			made.Spec.InitContainers = append(made.Spec.InitContainers, c)
		} else {
			made.Spec.Containers = append(made.Spec.Containers, c)
		}
	}
	return made
}

// One value each lets a known driver, and pods of the system, have what their manifests ask for where everything is denied, and nobody
// who has only their account, or their image, or their names.
func TestTheChartsProfilesAdmitWhatIsPublishedAndNobodyElse(t *testing.T) {
	values := []string{"parameters.hostProcess=Deny", "parameters.hostPaths=Deny", "parameters.equalPower=Deny"}
	for name := range publishedPods {
		name, mode, _ := strings.Cut(name, ",")
		kind := "system"
		if strings.HasPrefix(mode, " pipes") || strings.HasPrefix(mode, " HostProcess") {
			kind = "drivers"
		}
		values = append(values, kind+"."+name+".enabled=true")
	}
	chart := rendered(t, values...)
	text, err := chart.Parameters()
	if err != nil {
		t.Fatal(err)
	}
	standalone(t, text)
	for name, p := range publishedPods {
		t.Run(name, func(t *testing.T) {
			if err := at(t).api.EnsureNamespace(t.Context(), p.namespace, cmp.Or(p.account, "default"), "impostor"); err != nil {
				t.Fatal(err)
			}
			try := func(pod *corev1.Pod) error { return at(t).api.Client.Create(t.Context(), pod, client.DryRunAll) }
			if err := try(p.pod()); err != nil {
				t.Errorf("%s: %v", p.source, err)
			}
			impostor := func(field string, change func(*corev1.Pod)) {
				t.Helper()
				pod := p.pod()
				change(pod)
				if status := refused(t, try(pod)); !strings.Contains(status.Message, ": "+field+": want ") {
					t.Errorf("%s is not named:\n%s", field, status.Message)
				}
			}
			impostor("serviceAccount", func(pod *corev1.Pod) { pod.Spec.ServiceAccountName = "impostor" })
			if p.runAs != "" {
				impostor("runAsUserName", func(pod *corev1.Pod) {
					pod.Spec.SecurityContext.WindowsOptions.RunAsUserName = new(`NT AUTHORITY\LocalService`)
				})
			}
			for i := range len(p.containers) {
				of := func(pod *corev1.Pod) *corev1.Container {
					if own := i - len(pod.Spec.InitContainers); own >= 0 {
						return &pod.Spec.Containers[own]
					}
					return &pod.Spec.InitContainers[i]
				}
				impostor("image", func(pod *corev1.Pod) { of(pod).Image = "registry.example/" + of(pod).Image })
				impostor("container", func(pod *corev1.Pod) { of(pod).Name = "impostor" })
			}
		})
	}
}

// A pipe that a driver's manifests do not mount is not its own, although its container is a subject.
func TestAProfileHasThePipesOfItsDriverAlone(t *testing.T) {
	standalone(t, func() string {
		text, err := rendered(t, "drivers.azuredisk.enabled=true", "drivers.smb.enabled=true").Parameters()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}())
	for driver, pipe := range map[string]string{"azuredisk, pipes": "smb-v1", "smb, pipes, v1.17": "disk-v1"} {
		p := publishedPods[driver]
		if err := at(t).api.EnsureNamespace(t.Context(), p.namespace, p.account); err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(driver, ",")
		c := p.containers[name]
		p.containers = map[string]publishedContainer{name: {c.image, append(slices.Clone(c.mounts), pipes(pipe)...)}}
		refused(t, at(t).api.Client.Create(t.Context(), p.pod(), client.DryRunAll), "PG010")
	}
}

// The notes of a release tell of a driver that runs in the mode that its profile does not have on, and of no other.
func TestTheNotesTellOfADriverInAnotherMode(t *testing.T) {
	ungoverned(t)
	p := publishedPods["azuredisk, HostProcess"]
	if err := at(t).api.EnsureNamespace(t.Context(), p.namespace, p.account); err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"app": "csi-azuredisk-node-win"}
	set := named(&appsv1.DaemonSet{Spec: appsv1.DaemonSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: p.pod().Spec},
	}}, p.namespace)
	if err := at(t).api.Client.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := at(t).api.Client.Delete(context.WithoutCancel(t.Context()), set); err != nil {
			t.Error(err)
		}
	})
	warning := fmt.Sprintf("the DaemonSet %s/%s runs azuredisk in the mode HostProcess", p.namespace, set.Name)
	for values, isTold := range map[string]bool{
		"drivers.azuredisk.enabled=true,drivers.azuredisk.modes={Pipes}":       true,
		"drivers.azuredisk.enabled=true":                                       false,
		"drivers.azuredisk.enabled=true,drivers.azuredisk.modes={HostProcess}": false,
		"drivers.smb.enabled=true,drivers.smb.modes={Pipes}":                   false,
	} {
		notes, err := at(t).api.Notes(t.Context(), shared.tools, values)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(notes, warning) != isTold || strings.Contains(notes, "in the mode") != isTold {
			t.Errorf("%s:\n%s", values, notes)
		}
	}
}
