package proxy

import (
	"testing"

	"github.com/pipeguard/pipeguard/internal/core/caller"
)

func TestACallerInWordsIsItsServiceAccountOrItsProgram(t *testing.T) {
	for want, who := range map[string]caller.Caller{
		"kube-system/csi-smb-node-sa": {Pod: caller.Pod{Namespace: "kube-system", Name: "csi-smb-x7", ServiceAccount: "csi-smb-node-sa"}, User: caller.User{SID: "S-1-5-93-2-1"}},
		"kube-system/csi-smb-x7":      {Pod: caller.Pod{Namespace: "kube-system", Name: "csi-smb-x7"}},
		`S-1-5-18 C:\a.exe`:           {User: caller.User{SID: "S-1-5-18"}, Process: caller.Process{Exe: `C:\a.exe`}},
		"S-1-5-18":                    {User: caller.User{SID: "S-1-5-18"}},
	} {
		if got := inWords(who); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
