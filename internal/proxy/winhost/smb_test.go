//go:build linux

package winhost

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/proxy/handler"
	"github.com/pipeguard/pipeguard/internal/proxy/wmi"
)

// fakeNetwork answers for shares; one that is not in it answers.
type fakeNetwork map[string]error

func (n fakeNetwork) Answers(share string) (bool, error) {
	err, is := n[share]
	return !is, err
}

// newShares has no mapping. Methods change the table as the host would; its rows are hand-made.
func newShares(t *testing.T) (shares, *fakeWMI, *ground) {
	t.Helper()
	f, g := newFakeWMI(t), newGround(t)
	f.changes[smbMapping+".Create"] = func(c wmi.Call) {
		f.classes[smbMapping] = append(f.classes[smbMapping], row("mapping", properties{"RemotePath": c.In["RemotePath"], "Status": uint64(mappingOK)}))
	}
	f.changes[smbMapping+".Remove"] = func(c wmi.Call) {
		var left []wmi.Instance
		for _, r := range f.classes[smbMapping] {
			if r.Path != c.Path {
				left = append(left, r)
			}
		}
		f.classes[smbMapping] = left
	}
	return shares{asked{WMI: f}, g.places(), fakeNetwork{}, true, newCredentials(forgetful{}, zap.NewNop()), zap.NewNop()}, f, g
}

// mapped is a mapping that this process did not make.
func mapped(f *fakeWMI, status any, opens any) {
	f.classes[smbMapping] = []wmi.Instance{row("old", properties{"RemotePath": `\\Server\Share`, "Status": status})}
	f.classes["MSFT_SmbConnection"] = []wmi.Instance{row("connection", properties{"ServerName": "server", "ShareName": "share", "NumOpens": opens})}
}

const canary = `c4n4ry:\secret`

func mapping(t *testing.T, g *ground, remote, local, user, password string) handler.SMBMapping {
	t.Helper()
	path, err := handler.ParseRemotePath(remote)
	if err != nil {
		t.Fatal(err)
	}
	m := handler.SMBMapping{Remote: path, Username: user, Password: handler.NewSecret(password)}
	if local != "" {
		m.Local = g.path(local)
	}
	return m
}

const (
	created = smbMapping + ".Create"
	removed = smbMapping + ".Remove"
)

// methods are the names of the methods that were called.
func methods(f *fakeWMI) []string {
	var names []string
	for _, call := range f.calls {
		name, _, _ := strings.Cut(call, " [")
		names = append(names, name)
	}
	return names
}

func TestAShareIsMappedOnceForAllItsPaths(t *testing.T) {
	s, f, g := newShares(t)
	wants(t, s.NewSMBGlobalMapping(t.Context(), mapping(t, g, `\\Server\Share\Sub\Dir`, `C:\work\a`, `DOM\us:er`, `p:\w`)), nil)
	f.wantCalls(created + ` [Credential:secret(DOM\\us\:er:p:\w) RemotePath:\\server\share RequirePrivacy:true]`)
	if text := g.at(`C:\work\a`); text != `\\server\share\Sub\Dir\` {
		t.Errorf("the link leads to %s", text)
	}
	// Again, by another path of the share, and for another link.
	wants(t, s.NewSMBGlobalMapping(t.Context(), mapping(t, g, `\\Server\Share\Sub\Dir`, `C:\work\a`, `DOM\us:er`, `p:\w`)), nil)
	wants(t, s.NewSMBGlobalMapping(t.Context(), mapping(t, g, `//SERVER/share`, `C:\work\b`, `DOM\us:er`, `p:\w`)), nil)
	if len(f.calls) != 1 {
		t.Errorf("mapped again: %v", methods(f))
	}
}

func TestAShareIsMappedAsTheNodeWithoutAUser(t *testing.T) {
	s, f, g := newShares(t)
	s.requirePrivacy = false
	wants(t, s.NewSMBGlobalMapping(t.Context(), mapping(t, g, `\\server\share`, "", "", canary)), nil)
	f.wantCalls(created + ` [RemotePath:\\server\share RequirePrivacy:false]`)
}

func TestAFailedMappingIsNotRemembered(t *testing.T) {
	s, f, g := newShares(t)
	f.says(created, 1326)
	m := mapping(t, g, `\\server\share`, "", "user", "pw")
	wants(t, s.NewSMBGlobalMapping(t.Context(), m), fs.ErrPermission, "code=1326", `\\server\share`)
	if s.known.compare(`\\server\share`, m) != untold {
		t.Error("the credentials are remembered")
	}
	delete(f.answers, created)
	wants(t, s.NewSMBGlobalMapping(t.Context(), m), nil)
	wants(t, s.RemoveSMBGlobalMapping(t.Context(), `\\server\share`), nil)
	if s.known.compare(`\\server\share`, m) != untold {
		t.Error("the credentials are remembered after the mapping is gone")
	}
}

func TestRemoveSMBGlobalMapping(t *testing.T) {
	s, f, _ := newShares(t)
	wants(t, s.RemoveSMBGlobalMapping(t.Context(), `\\server\share`), fs.ErrNotExist, `\\server\share`)
	mapped(f, uint64(0), "1")
	f.says(removed, 5)
	wants(t, s.RemoveSMBGlobalMapping(t.Context(), `\\server\share`), fs.ErrPermission, "code=5")
	delete(f.answers, removed)
	f.fails[smbMapping] = errors.New("lost")
	wants(t, s.RemoveSMBGlobalMapping(t.Context(), `\\server\share`), f.fails[smbMapping])
	delete(f.fails, smbMapping)
	wants(t, s.RemoveSMBGlobalMapping(ended(t), `\\server\share`), context.Canceled)
	f.calls = nil
	wants(t, s.RemoveSMBGlobalMapping(t.Context(), `\\server\share`), nil)
	f.wantCalls(removed + " old [Force:true]")
}

func TestWhatIsRememberedDiffersFromProcessToProcess(t *testing.T) {
	m := handler.SMBMapping{Username: "user", Password: handler.NewSecret(canary)}
	if a, b := newCredentials(forgetful{}, zap.NewNop()), newCredentials(forgetful{}, zap.NewNop()); a.digest(m) == b.digest(m) {
		t.Error("the digest has no key")
	}
}

func TestAnUncheckedRemotePathIsRefused(t *testing.T) {
	s, f, _ := newShares(t)
	wants(t, s.NewSMBGlobalMapping(t.Context(), handler.SMBMapping{Username: "user"}), fs.ErrInvalid)
	wants(t, s.NewSMBGlobalMapping(ended(t), mapping(t, nil, `\\server\share`, "", "", "")), context.Canceled)
	f.wantCalls()
}
