package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/config"
	"github.com/pipeguard/pipeguard/internal/proxy/fakehost"
	"github.com/pipeguard/pipeguard/internal/proxy/handler"
	"github.com/pipeguard/pipeguard/test/harness"
)

// newNode is a machine whose proxy has the configuration that the chart writes for a new node with the profile azuredisk, and what the
// installer brings: the paths of Windows and the address of the runtime are replaced, and nothing else.
type newNode struct {
	*machine
	token string // the file
}

var (
	azuredisk = place{"kube-system", "csi-azuredisk-node-win-x", uidOf("1"), "csi-azuredisk-node-sa", "azuredisk", strings.Repeat("1", 64)}
	registrar = place{"kube-system", "csi-azuredisk-node-win-x", uidOf("1"), "csi-azuredisk-node-sa", "node-driver-registrar", strings.Repeat("2", 64)}
	pretender = place{"kube-system", "pretender", uidOf("3"), "default", "azuredisk", strings.Repeat("3", 64)}
	elsewhere = place{"team", "pretender", uidOf("4"), "csi-azuredisk-node-sa", "azuredisk", strings.Repeat("4", 64)}
	restarted = place{"kube-system", "csi-azuredisk-node-win-y", uidOf("5"), "csi-azuredisk-node-sa", "azuredisk", strings.Repeat("5", 64)}
)

func startNewNode(t *testing.T) *newNode {
	t.Helper()
	n := newMachine(t, "")
	for i, p := range []place{azuredisk, registrar, pretender, elsewhere} {
		n.add(p, 10+i)
	}
	settings, err := config.ParseProxy(n.config, []byte(read(t, n.config)))
	if err != nil {
		t.Fatal(err)
	}
	asked := settings.Containers

	// What the pod's volume and the kubelet's directory hold. The kubelet's certificate has no name of this node.
	brought, pki, data := t.TempDir(), t.TempDir(), t.TempDir()
	own := filepath.Join(pki, "kubelet.crt")
	harness.Replace(t, filepath.Join(brought, "ca.crt"), harness.SelfSigned(t, "cluster").PEM)
	harness.Replace(t, filepath.Join(brought, "token"), "secret")
	harness.Replace(t, own, read(t, asked.Kubelet.CAFile))
	files := map[string]string{}
	for _, c := range (&identityFlags{from: brought, certificates: []string{own, own + "-of-another-platform"}}).copies() {
		text, err := c.Read(c.From)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(data, strings.TrimPrefix(c.To, dataDir+`\`))
		harness.Replace(t, file, string(text))
		files[c.To] = file
	}

	text := read(t, filepath.Join("testdata", "chart-azuredisk.yaml"))
	for _, change := range [][2]string{
		{`endpoint: \\.\pipe\containerd-containerd`, "endpoint: " + asked.Endpoint + "\n  users: [\"" + asked.Users[0] + "\"]\n  nameTimeout: 4s"},
		{"https://127.0.0.1:10250", asked.Kubelet.URL}, {kubeletCAFile, files[kubeletCAFile]}, {kubeletTokenFile, files[kubeletTokenFile]},
	} {
		if strings.Count(text, change[0]) != 1 {
			t.Fatalf("%q is not there once in\n%s", change[0], text)
		}
		text = strings.Replace(text, change[0], change[1], 1)
	}
	harness.Replace(t, n.config, text)
	return &newNode{n, files[kubeletTokenFile]}
}

// formats has a process of a container ask for a volume to be formatted, by a connection of its own.
func (n *newNode) formats(t *testing.T, p *program, of place, volume handler.VolumeID) string {
	t.Helper()
	c := newCaller(t, n.group(of.id))
	c.open(filepath.Join(p.sockets, "csi-proxy-volume-v1.sock"))
	c.Say("format %s", volume)
	return c.Hear()
}

func TestOnANewNodeTheDriverOfAnEnabledProfileFormatsANewVolumeAndNobodyElseDoes(t *testing.T) {
	n := startNewNode(t)
	p := startProgram(t, "--config", n.config, "-node-name", "win-1")
	for name, of := range map[string]place{"a sidecar": registrar, "another account of its namespace": pretender, "its names elsewhere": elsewhere, "another driver": driverPlace} {
		t.Run(name, func(t *testing.T) {
			expect(t, n.formats(t, p, of, fakehost.UnformattedVolume), "PermissionDenied")
		})
	}
	expect(t, n.formats(t, p, azuredisk, fakehost.FormattedVolume), "AlreadyExists")
	expect(t, n.formats(t, p, azuredisk, fakehost.UnformattedVolume), "OK")
	expect(t, n.formats(t, p, azuredisk, fakehost.UnformattedVolume), "AlreadyExists")
}

func TestANewPodIsKnownByTheTokenThatWasRenewed(t *testing.T) {
	n := startNewNode(t)
	p := startProgram(t, "--config", n.config)
	expect(t, n.formats(t, p, azuredisk, fakehost.FormattedVolume), "AlreadyExists")
	n.change(func() { n.machine.token = "renewed" })
	n.add(restarted, 20)
	expect(t, n.formats(t, p, restarted, fakehost.UnformattedVolume), "PermissionDenied")
	harness.Replace(t, n.token, "renewed")
	expect(t, n.formats(t, p, restarted, fakehost.UnformattedVolume), "OK")
}

func TestACertificateThatTheInstallerDoesNotKnowIsNoKubelet(t *testing.T) {
	n := startNewNode(t)
	settings, err := config.ParseProxy(n.config, []byte(read(t, n.config)))
	if err != nil {
		t.Fatal(err)
	}
	harness.Replace(t, settings.Containers.Kubelet.CAFile, harness.SelfSigned(t, "cluster").PEM)
	p := startProgram(t, "--config", n.config)
	expect(t, n.formats(t, p, azuredisk, fakehost.UnformattedVolume), "PermissionDenied")
	if _, err := os.Stat(n.token); err != nil {
		t.Error(err)
	}
}
