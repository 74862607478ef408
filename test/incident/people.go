package main

import (
	"time"

	"github.com/pipeguard/pipeguard/internal/core/caller"
)

// The callers of the story, as the kernel, the container runtime and the kubelet would name them.
var (
	diskDriver = inPod(3120, `C:\csi\azurediskplugin.exe`, "csi-azuredisk-node-sa",
		caller.Container{Name: "azuredisk", ID: id('a'), Image: "mcr.microsoft.com/oss/kubernetes-csi/azuredisk-csi:v1.31.2"},
		caller.Pod{Namespace: "kube-system", Name: "csi-azuredisk-node-win-x7k2p", UID: "5b1d2c60-4a3e-4c0f-9a51-0d6f4b7e1a01"})
	fileDriver = inPod(3388, `C:\csi\azurefileplugin.exe`, "csi-azurefile-node-sa",
		caller.Container{Name: "azurefile", ID: id('b'), Image: "mcr.microsoft.com/oss/kubernetes-csi/azurefile-csi:v1.31.2"},
		caller.Pod{Namespace: "kube-system", Name: "csi-azurefile-node-win-m4d8q", UID: "8c7e90f4-6f0d-4d83-8a2b-21c5a8d3f302"})
	reportRunner = inPod(6244, `C:\app\report-runner.exe`, "report-runner",
		caller.Container{Name: "runner", ID: id('c'), Image: "registry.example/shop/report-runner:2.4"},
		caller.Pod{Namespace: "shop", Name: "report-runner-6c9f7", UID: "d41a7b35-93c2-4f6e-b7d8-7e0c9a5f6403"})
	diskCheck = caller.Caller{
		Assurance: caller.AssuranceProcess, IsHost: true,
		Process: caller.Process{PID: 5012, Start: day.Add(13*time.Hour + 31*time.Minute), Exe: `C:\Program Files\Node Tools\diskcheck.exe`},
		User:    caller.User{SID: "S-1-5-21-3623811015-3361044348-30300820-1013", Name: `WIN-01\operator`},
	}
)

func inPod(pid uint32, exe, account string, c caller.Container, p caller.Pod) caller.Caller {
	p.ServiceAccount = account
	return caller.Caller{
		Assurance: caller.AssurancePod, Container: c, Pod: p,
		Process: caller.Process{PID: pid, Start: day.Add(7*time.Hour + 58*time.Minute), Exe: exe},
		User:    caller.User{SID: "S-1-5-93-2-1", Name: `User Manager\ContainerAdministrator`},
	}
}

// id is a container's.
func id(c byte) string {
	text := make([]byte, 64)
	for i := range text {
		text[i] = "0123456789abcdef"[(i*7+int(c))%16]
	}
	return string(text)
}
