//go:build linux

package winhost

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/proxy/handler"
	"github.com/pipeguard/pipeguard/internal/proxy/wmi"
)

// connection shows a connection to the share with so many open files, or none with missing.
func connection(f *fakeWMI, opens any) {
	f.classes["MSFT_SmbConnection"] = nil
	if opens != missing {
		f.classes["MSFT_SmbConnection"] = append(f.classes["MSFT_SmbConnection"], row("connection", properties{"ServerName": "server", "ShareName": "share", "NumOpens": opens}))
	}
}

// rebooted is the same host with a proxy that knows nothing of what was before.
func rebooted(s shares) shares {
	s.known = newCredentials(forgetful{}, zap.NewNop())
	return s
}

func answersWith(number uint32) fakeNetwork {
	return fakeNetwork{`\\server\share`: failedAs("GetFileAttributesW", `\\server\share`, number)}
}

func TestCredentialsAreProvenOnlyByAMappingThatIsMadeWithThem(t *testing.T) {
	const same, other, unknown = "same", "other", "unknown" // the credentials of the request, compared with those of the mapping
	gone := fakeNetwork{`\\server\share`: nil}
	anew := []string{removed + " mapping", created}
	tests := []struct {
		name    string
		given   string
		status  any
		opens   any
		link    bool
		network fakeNetwork
		kind    error // nil is success
		calls   []string
	}{
		{"it works with these", same, uint64(0), "3", true, nil, nil, nil},
		{"it works with these, and the root may not be looked at", same, uint64(0), "3", true, answersWith(5), nil, nil},
		{"it works with these, and the server does not answer now", same, uint64(0), "3", true, answersWith(53), handler.ErrUnavailable, nil},
		{"it works with these, and is being connected", same, uint64(5), "3", true, nil, handler.ErrUnavailable, nil},
		{"it was made with these, which the server rejects now", same, uint64(0), "3", true, answersWith(1326), fs.ErrPermission, nil},
		{"it was made with these and is not connected", same, uint64(2), "0", true, nil, nil, anew},
		{"it was made with these, and its share is gone", same, uint64(0), "0", true, gone, nil, anew},
		{"it was made with these and does not say how it is", same, nil, "0", true, nil, nil, anew},

		{"it works with others, and files are open", other, uint64(0), "3", false, nil, fs.ErrPermission, nil},
		{"it works with others, and a link leads to it", other, uint64(0), "0", true, nil, fs.ErrPermission, nil},
		{"it works with others, whose use is not told", other, uint64(0), nil, false, nil, fs.ErrPermission, nil},
		{"it works with others, and no connection is shown", other, uint64(0), missing, false, nil, fs.ErrPermission, nil},
		{"it works with others, who may not look at the root", other, uint64(0), "1", false, answersWith(5), fs.ErrPermission, nil},
		{"it works with others, and the server does not answer now", other, uint64(0), "0", false, answersWith(121), handler.ErrUnavailable, nil},
		{"it was made with others and is not connected, and a link leads to it", other, uint64(2), "0", true, nil, fs.ErrPermission, nil},
		{"it works with others, and nobody uses it", other, uint64(0), "0", false, nil, nil, anew},
		{"it was made with others, which the server rejects now", other, uint64(0), "3", true, answersWith(86), nil, anew},

		{"nobody knows with what it works, and files are open", unknown, uint64(0), "3", false, nil, handler.ErrPrecondition, nil},
		{"nobody knows with what it works, and a link leads to it", unknown, uint64(0), "0", true, nil, handler.ErrPrecondition, nil},
		{"nobody knows with what it works, nor its use", unknown, uint64(0), missing, false, nil, handler.ErrPrecondition, nil},
		{"nobody knows with what it works, and nobody uses it", unknown, uint64(0), "0", false, nil, nil, anew},
		{"nobody knows with what it was made, and it is not connected", unknown, uint64(2), missing, true, nil, nil, anew},
		{"nobody knows with what it was made, which the server rejects", unknown, uint64(0), "0", true, answersWith(1330), nil, anew},
		{"nobody knows with what it was made, and the server does not answer", unknown, uint64(0), "0", false, answersWith(64), handler.ErrUnavailable, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, f, g := newShares(t)
			wants(t, s.NewSMBGlobalMapping(t.Context(), mapping(t, g, `\\server\share`, "", "user", "first-password")), nil)
			if tt.given == unknown {
				s = rebooted(s)
			}
			connection(f, tt.opens)
			f.classes[smbMapping][0].Properties["Status"] = tt.status
			if tt.network != nil {
				s.network = tt.network
			}
			g.mkdir("C/work/plugins/kubernetes.io/csi/smb.csi.k8s.io/hash")
			if tt.link {
				g.link("C/work/plugins/kubernetes.io/csi/smb.csi.k8s.io/hash/globalmount", `\\Server\Share\pvc-1`)
			}
			f.calls = nil
			password := map[string]string{same: "first-password", other: "second-password", unknown: "first-password"}[tt.given]
			wants(t, s.NewSMBGlobalMapping(t.Context(), mapping(t, g, `\\server\share`, "", "user", password)), tt.kind)
			if diff := cmp.Diff(tt.calls, methods(f)); diff != "" {
				t.Errorf("methods called (-want +got):\n%s", diff)
			}
			for _, call := range f.calls {
				if strings.Contains(call, "Force:true") {
					t.Errorf("files are closed: %s", call)
				}
			}
			if len(f.classes[smbMapping]) != 1 {
				t.Error("the mapping is gone")
			}
		})
	}
}

func TestOtherCredentialsAreAnyThatDiffer(t *testing.T) {
	for name, given := range map[string][2]string{
		"another password": {"user", "second-password"},
		"another user":     {"user2", "first-password"},
		"no user":          {"", ""},
		"the boundary between them lies elsewhere": {"userf", "irst-password"},
	} {
		s, f, g := newShares(t)
		wants(t, s.NewSMBGlobalMapping(t.Context(), mapping(t, g, `\\server\share`, "", "user", "first-password")), nil)
		connection(f, "1")
		wants(t, s.NewSMBGlobalMapping(t.Context(), mapping(t, g, `\\server\share`, "", given[0], given[1])), fs.ErrPermission, "other credentials")
		if len(f.calls) != 1 {
			t.Errorf("%s: %v", name, f.calls)
		}
	}
}

func TestAFileThatWasOpenedMeanwhileIsNotClosed(t *testing.T) {
	for _, number := range []uint32{2401, 2402, 2404} {
		s, f, g := newShares(t)
		wants(t, s.NewSMBGlobalMapping(t.Context(), mapping(t, g, `\\server\share`, "", "user", "first-password")), nil)
		connection(f, "0")
		f.says(removed, number)
		wants(t, s.NewSMBGlobalMapping(t.Context(), mapping(t, g, `\\server\share`, "", "user", "second-password")), handler.ErrPrecondition, fmt.Sprint(number))
		// The mapping and what is known of it are as before.
		wants(t, s.NewSMBGlobalMapping(t.Context(), mapping(t, g, `\\server\share`, "", "user", "first-password")), nil)
		f.wantCalls(f.calls[0], removed+" mapping [Force:false]")
	}
}

func TestAWrongPasswordTakesAMappingThatNobodyUsedWithIt(t *testing.T) {
	s, f, g := newShares(t)
	wants(t, s.NewSMBGlobalMapping(t.Context(), mapping(t, g, `\\server\share`, "", "user", "first-password")), nil)
	connection(f, "0")
	f.says(created, 1326)
	wants(t, s.NewSMBGlobalMapping(t.Context(), mapping(t, g, `\\server\share`, "", "user", "wrong-password")), fs.ErrPermission, "1326")
	delete(f.answers, created)
	// Nothing is remembered of the wrong one, and the right one makes the mapping again.
	wants(t, s.NewSMBGlobalMapping(t.Context(), mapping(t, g, `\\server\share`, "", "user", "first-password")), nil)
	if len(f.classes[smbMapping]) != 1 {
		t.Error("there is no mapping")
	}
}

func TestOnlyLinksToTheShareAreUse(t *testing.T) {
	for name, tt := range map[string]struct {
		plant func(g *ground)
		use   string // empty if there is none
	}{
		"nothing":                  {func(*ground) {}, ""},
		"a link to another share":  {func(g *ground) { g.link("C/work/a", `\\server\other`) }, ""},
		"a link to another server": {func(g *ground) { g.link("C/work/a", `\\server2\share`) }, ""},
		"a link on this node":      {func(g *ground) { g.link("C/work/a", `C:\work\b`) }, ""},
		"a link to no share":       {func(g *ground) { g.link("C/work/a", `\\server\c$`) }, ""},
		"a file":                   {func(g *ground) { g.write("C/work/a") }, ""},
		"what a pod keeps": {func(g *ground) {
			g.mkdir("C/work/pods/1/volumes/kubernetes.io~empty-dir/x")
			g.link("C/work/pods/1/volumes/kubernetes.io~empty-dir/x/a", `\\server\share`)
		}, ""},
		"behind a link":             {func(g *ground) { g.link("C/outside/a", `\\server\share`); g.link("C/work/out", `C:\outside`) }, ""},
		"a link":                    {func(g *ground) { g.link("C/work/a", `\\server\share`) }, `C:\work\a`},
		"a link of the old servers": {func(g *ground) { g.link("D/more/a", `\\?\\\SERVER\Share\x\`) }, `D:\more\a`},
		"deep": {func(g *ground) {
			g.mkdir("C/work/1/2/3/4/5/6/7/8")
			g.link("C/work/1/2/3/4/5/6/7/8/a", `\\server\share\x`)
		}, `C:\work\1\2\3\4\5\6\7\8\a`},
		"too deep to be looked at": {func(g *ground) { g.mkdir("C/work/" + strings.Repeat("d/", maxWalkDepth+2)) }, "more below the working directories"},
	} {
		t.Run(name, func(t *testing.T) {
			s, f, g := newShares(t)
			connection(f, "0")
			tt.plant(g)
			switch err := s.use(t.Context(), `\\server\share`); {
			case tt.use == "" && err != nil:
				t.Error(err)
			case tt.use != "" && (err == nil || !strings.Contains(err.Error(), tt.use)):
				t.Errorf("got %v, want %s", err, tt.use)
			}
		})
	}
	s, f, _ := newShares(t)
	connection(f, "0")
	if err := s.use(ended(t), `\\server\share`); err == nil {
		t.Error("a look that was given up finds no use")
	}
	f.fails["MSFT_SmbConnection"] = errors.New("lost")
	wants(t, s.use(t.Context(), `\\server\share`), f.fails["MSFT_SmbConnection"])
}

func TestAWalkHasABound(t *testing.T) {
	g := newGround(t)
	for i := range 20 {
		g.write(fmt.Sprintf("C/work/%d", i))
	}
	none := func(handler.RemotePath, string) error { return nil }
	left := 19
	d, err := g.open(`C:\work`)
	if err != nil {
		t.Fatal(err)
	}
	if err := (walk{t.Context(), &left, none}).down(d, `C:\work`, 0); err == nil {
		t.Error("more is walked than the bound")
	}
	if left = 20; (walk{t.Context(), &left, none}).down(d, `C:\work`, 0) != nil || left != 0 {
		t.Errorf("%d are left of the bound", left)
	}
	if err := errors.Join(d.Close(), os.RemoveAll(g.base+"/D/more")); err != nil {
		t.Fatal(err)
	}
	wants(t, g.places().eachLink(t.Context(), none), nil) // a working directory need not be there yet
}

func TestWhatIsRememberedIsBounded(t *testing.T) {
	s, f, g := newShares(t)
	ask := func(n int) error {
		return s.NewSMBGlobalMapping(t.Context(), mapping(t, g, fmt.Sprintf(`\\server\share-%d`, n), "", "user", "a-password"))
	}
	for n := range maxRemembered - 2 {
		share := handler.Share(fmt.Sprintf(`\\server\share-%d`, n))
		s.known.of[share] = made{Sum: s.known.digest(handler.SMBMapping{Username: "user", Password: handler.NewSecret("a-password")})}
		f.classes[smbMapping] = append(f.classes[smbMapping], row("mapping", properties{"RemotePath": string(share), "Status": uint64(mappingOK)}))
	}
	wants(t, ask(maxRemembered-2), nil)
	wants(t, ask(maxRemembered-1), nil)
	before := len(f.calls)
	wants(t, ask(maxRemembered), handler.ErrPrecondition, "1024 shares are mapped")
	wants(t, ask(7), nil) // one of those that are known
	if len(f.calls) != before || len(s.known.of) != maxRemembered {
		t.Errorf("%d calls more, %d shares are remembered", len(f.calls)-before, len(s.known.of))
	}
	// Mappings that somebody else removed make room.
	f.classes[smbMapping] = f.classes[smbMapping][:10]
	wants(t, ask(maxRemembered), nil)
	if len(s.known.of) != 11 {
		t.Errorf("%d shares are remembered", len(s.known.of))
	}
	f.fails[smbMapping] = errors.New("lost")
	wants(t, s.room(t.Context(), `\\server\x`), nil)
	for n := range maxRemembered {
		s.known.of[handler.Share(fmt.Sprintf(`\\other\%d`, n))] = made{}
	}
	wants(t, s.room(t.Context(), `\\server\x`), f.fails[smbMapping])
}

func TestErrorsOfMappingsSayTheirRemedy(t *testing.T) {
	for number, remedy := range map[uint32][]string{
		1219: {"code=1219", "Windows keeps one set for a server", "Use one user for all shares of the server", "Get-SmbGlobalMapping"},
		2138: {"code=2138", "Start the service LanmanWorkstation", "Client for Microsoft Networks"},
	} {
		s, f, g := newShares(t)
		f.says(created, number)
		wants(t, s.NewSMBGlobalMapping(t.Context(), mapping(t, g, `\\server\share`, "", "user", "a-password")), handler.ErrPrecondition, remedy...)
		// The provider may answer by an HRESULT instead.
		delete(f.answers, created)
		f.fails[created] = &wmi.Error{Op: "call", What: created, Code: 0x80070000 | number, Text: said}
		wants(t, s.NewSMBGlobalMapping(t.Context(), mapping(t, g, `\\server\share`, "", "user", "a-password")), handler.ErrPrecondition, remedy[1:]...)
	}
}
