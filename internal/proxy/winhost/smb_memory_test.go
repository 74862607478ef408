//go:build linux

package winhost

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/pipeguard/pipeguard/internal/proxy/handler"
	"github.com/pipeguard/pipeguard/internal/proxy/wmi"
)

// page is a memory of this process.
type page struct {
	state []byte
	fails error
}

func (p *page) Load() ([]byte, error) { return p.state, p.fails }

func (p *page) Store(state []byte) error {
	if p.fails == nil {
		p.state = bytes.Clone(state)
	}
	return p.fails
}

func TestAProxyThatIsStartedAgainKnowsTheCredentials(t *testing.T) {
	s, f, g := newShares(t)
	kept := &page{}
	s.known = newCredentials(kept, zap.NewNop())
	ours := mapping(t, g, `\\server\share`, "", "user", "first-password")
	ours.By = "kube-system/csi-smb-node-sa"
	wants(t, s.NewSMBGlobalMapping(t.Context(), ours), nil)
	connection(f, "3")

	s.known = newCredentials(kept, zap.NewNop())
	wants(t, s.NewSMBGlobalMapping(t.Context(), ours), nil)
	wants(t, s.NewSMBGlobalMapping(t.Context(), mapping(t, g, `\\server\share`, "", "user", "second-password")), fs.ErrPermission, "other credentials")
	wants(t, s.NewSMBGlobalMapping(t.Context(), mapping(t, g, `\\server\share`, "", "", "")), fs.ErrPermission)
	if len(f.calls) != 1 {
		t.Errorf("called: %v", f.calls)
	}
	if by, at := s.known.maker(`\\server\share`); by != ours.By || time.Since(at) > time.Hour {
		t.Errorf("made by %q at %v", by, at)
	}
	wants(t, s.RemoveSMBGlobalMapping(t.Context(), `\\server\share`), nil)
	if s.known = newCredentials(kept, zap.NewNop()); len(s.known.of) != 0 {
		t.Error("a mapping that is gone is remembered")
	}
}

func TestNothingThatIsKeptIsThePassword(t *testing.T) {
	s, _, g := newShares(t)
	kept := &page{}
	s.known = newCredentials(kept, zap.NewNop())
	wants(t, s.NewSMBGlobalMapping(t.Context(), mapping(t, g, `\\server\share`, "", "user", canary)), nil)
	if len(kept.state) == 0 {
		t.Fatal("nothing is kept")
	}
	for _, form := range []string{canary, base64.StdEncoding.EncodeToString([]byte(canary)), hex.EncodeToString([]byte(canary)), `c4n4ry:\\secret`} {
		if strings.Contains(string(kept.state), form) {
			t.Errorf("kept: %s", kept.state)
		}
	}
}

func TestAMemoryThatCannotBeReadKnowsNothing(t *testing.T) {
	whole := &page{}
	newCredentials(whole, zap.NewNop()).remember(`\\server\share`, handler.SMBMapping{Username: "user", Password: handler.NewSecret("first-password")})
	for name, p := range map[string]*page{
		"it fails":         {state: whole.state, fails: errors.New("lost")},
		"it is cut off":    {state: whole.state[:len(whole.state)-1]},
		"it has no key":    {state: []byte(`{"shares":{"\\\\server\\share":{}}}`)},
		"it is not a list": {state: []byte(`[]`)},
	} {
		t.Run(name, func(t *testing.T) {
			core, logged := observer.New(zap.WarnLevel)
			s, f, g := newShares(t)
			s.known = newCredentials(p, zap.New(core))
			if len(s.known.of) != 0 || logged.Len() != 1 {
				t.Errorf("%d shares are known, %d log lines", len(s.known.of), logged.Len())
			}
			mapped(f, uint64(0), "3")
			wants(t, s.NewSMBGlobalMapping(t.Context(), mapping(t, g, `\\server\share`, "", "user", "first-password")), handler.ErrPrecondition)
			f.wantCalls()
		})
	}
	// One that cannot be written serves this process.
	core, logged := observer.New(zap.WarnLevel)
	broken := &page{}
	c := newCredentials(broken, zap.New(core))
	broken.fails = errors.New("full")
	m := handler.SMBMapping{Username: "user"}
	c.remember(`\\server\share`, m)
	if c.compare(`\\server\share`, m) != unchanged || logged.Len() != 1 {
		t.Errorf("%d log lines", logged.Len())
	}
}

func TestMappingsAreListedWithTheirMakersAndLinks(t *testing.T) {
	s, f, g := newShares(t)
	h := &Host{shares: s}
	if list, err := h.Mappings(t.Context()); err != nil || list != nil {
		t.Errorf("got %v, %v", list, err)
	}
	ours := mapping(t, g, `\\Server\Share\Sub`, `C:\work\a`, "user", "a-password")
	ours.By = "kube-system/csi-smb-node-sa"
	wants(t, s.NewSMBGlobalMapping(t.Context(), ours), nil)
	g.link("D/more/b", `\\?\\\server\SHARE\other\`)
	f.classes[smbMapping] = append(f.classes[smbMapping],
		row("left", properties{"RemotePath": `\\Server\Left`, "Status": uint64(2)}),
		row("left with a letter", properties{"RemotePath": `\\server\left`, "Status": uint64(0)}),
		row("below", properties{"RemotePath": `\\server\share\sub`, "Status": uint64(2)}),
		row("like", properties{"RemotePath": `\\server\shar`, "Status": uint64(0)}))
	list, err := h.Mappings(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range list {
		list[i].At = time.Time{}
	}
	if diff := cmp.Diff([]handler.Mapping{
		{Share: `\\server\left`, Connected: true},
		{Share: `\\server\shar`, Connected: true},
		{Share: `\\server\share`, Connected: true, Links: 2, By: ours.By},
		{Share: `\\server\share\sub`, Links: 1},
	}, list); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, code := range []uint32{invalidNamespace, invalidClass} { // a Windows that has no such mappings
		f.fails[smbMapping] = &wmi.Error{Op: "query", What: smbMapping, Code: code}
		if list, err := h.Mappings(t.Context()); list != nil || err != nil {
			t.Errorf("got %v, %v", list, err)
		}
	}
	f.fails[smbMapping] = errors.New("lost")
	_, err = h.Mappings(t.Context())
	wants(t, err, f.fails[smbMapping])
	_, err = h.Mappings(ended(t))
	wants(t, err, context.Canceled)
}
