//go:build !windows

package integration

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// One value each lets a known driver have the pipes that its manifests mount, and nobody else.
func TestTheChartsProfilesAdmitTheirDriversAndNobodyElse(t *testing.T) {
	profiles := map[string]struct{ namespace, account, container, pipe, not string }{
		"azuredisk": {"kube-system", "csi-azuredisk-node-sa", "azuredisk", "csi-proxy-disk-v1beta2", "csi-proxy-system-v1alpha1"},
		"azurefile": {"kube-system", "csi-azurefile-node-sa", "azurefile", "csi-proxy-smb-v1beta1", "csi-proxy-disk-v1"},
		"smb":       {"kube-system", "csi-smb-node-sa", "smb", "csi-proxy-smb-v1", "csi-proxy-volume-v1"},
		"awsEbs":    {"kube-system", "ebs-csi-node-sa", "ebs-plugin", "csi-proxy-volume-v1", "csi-proxy-smb-v1"},
		"gcePd":     {"gce-pd-csi-driver", "csi-gce-pd-node-sa-win", "gce-pd-driver", "csi-proxy-filesystem-v1beta1", "csi-proxy-smb-v1"},
		"vsphere":   {"vmware-system-csi", "vsphere-csi-node", "vsphere-csi-node", "csi-proxy-system-v1alpha1", "csi-proxy-smb-v1"},
		"trident":   {"trident", "trident-node-windows", "trident-main", "csi-proxy-smb-v1beta1", "csi-proxy-disk-v1"},
	}
	var values []string
	for name := range profiles {
		values = append(values, "drivers."+name+".enabled=true")
	}
	chart := rendered(t, values...)
	text, err := chart.Parameters()
	if err != nil {
		t.Fatal(err)
	}
	standalone(t, text)
	for name, c := range profiles {
		t.Run(name, func(t *testing.T) {
			if err := at(t).api.EnsureNamespace(t.Context(), c.namespace, c.account); err != nil {
				t.Fatal(err)
			}
			try := func(namespace, account, container, pipe string) error {
				p := pod(namespace, account, `\\.\pipe\`+pipe)
				p.Spec.Containers = append([]corev1.Container{{Name: "first", Image: image}}, p.Spec.Containers...)
				p.Spec.Containers[1].Name = container
				return at(t).api.Client.Create(t.Context(), p)
			}
			if err := try(c.namespace, c.account, c.container, c.pipe); err != nil {
				t.Errorf("the driver: %v", err)
			}
			refused(t, try(c.namespace, "", c.container, c.pipe), "PG010")
			refused(t, try(c.namespace, c.account, "other", c.pipe), "PG010")
			refused(t, try(c.namespace, c.account, c.container, c.not))
		})
	}
}
