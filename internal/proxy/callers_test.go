package proxy

import (
	"testing"

	"github.com/pipeguard/pipeguard/internal/proxy/peer"
)

func TestACallerInWordsIsItsServiceAccountOrItsProgram(t *testing.T) {
	for want, who := range map[string]peer.Identity{
		"kube-system/csi-smb-node-sa": {Pod: &peer.Pod{Namespace: "kube-system", Name: "csi-smb-x7", ServiceAccount: "csi-smb-node-sa"}, User: peer.User{SID: "S-1-5-93-2-1"}},
		"kube-system/csi-smb-x7":      {Pod: &peer.Pod{Namespace: "kube-system", Name: "csi-smb-x7"}},
		`S-1-5-18 C:\a.exe`:           {User: peer.User{SID: "S-1-5-18"}, Process: peer.Process{Exe: `C:\a.exe`}},
		"S-1-5-18":                    {User: peer.User{SID: "S-1-5-18"}},
	} {
		if got := inWords(who); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
