//go:build linux

package winhost

import (
	"context"
	"errors"
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheLinkIsLookedAtBeforeTheShareIsMapped(t *testing.T) {
	tests := []struct {
		local string
		kind  error
		plant func(g *ground)
	}{
		{`C:\work`, fs.ErrPermission, nil},
		{`C:\work\nothing\x`, fs.ErrNotExist, nil},
		{`C:\work\file`, fs.ErrExist, func(g *ground) { g.write("C/work/file") }},
		{`C:\work\file\x`, errNotDir, func(g *ground) { g.write("C/work/file") }},
		{`C:\work\dir`, fs.ErrExist, func(g *ground) { g.mkdir("C/work/dir") }},
		{`C:\work\mount-x`, fs.ErrExist, func(g *ground) { g.link("C/work/mount-x", `\\server\share`) }},
		{`C:\work\link`, fs.ErrExist, func(g *ground) { g.link("C/work/link", `\\server\other`) }},
		{`C:\work\deeper`, fs.ErrExist, func(g *ground) { g.link("C/work/deeper", `\\server\share\sub`) }},
		{`C:\work\longer`, fs.ErrExist, func(g *ground) { g.link("C/work/longer", `\\server\share2`) }},
		{`C:\work\out\x`, fs.ErrPermission, func(g *ground) { g.link("C/work/out", g.base+"/C/outside") }},
	}
	for _, test := range tests {
		t.Run(test.local, func(t *testing.T) {
			s, f, g := newShares(t)
			if test.plant != nil {
				test.plant(g)
			}
			before := list(t, g.base)
			wants(t, s.NewSMBGlobalMapping(t.Context(), mapping(t, g, `\\server\share`, test.local, "user", canary)), test.kind)
			unchangedDisk(t, g, before)
			f.wantCalls()
		})
	}
}

func TestALinkThatLeadsThereIsLeft(t *testing.T) {
	for _, text := range []string{`\\server\share\Sub`, `\\SERVER\Share\sub\`, `\\?\\\server\share\sub\`} {
		s, f, g := newShares(t)
		g.link("C/work/link", text)
		wants(t, s.NewSMBGlobalMapping(t.Context(), mapping(t, g, `\\server\share\Sub`, `C:\work\link`, "user", "pw")), nil)
		if on := g.at(`C:\work\link`); on != text || len(f.calls) != 1 {
			t.Errorf("there is %s, and %v was called", on, methods(f))
		}
	}
}

func TestAMappingIsUndoneIfItsLinkFails(t *testing.T) {
	s, f, g := newShares(t)
	f.answers[created] = func() answer { g.write("C/work/link"); return answer{} } // somebody is faster
	err := s.NewSMBGlobalMapping(t.Context(), mapping(t, g, `\\server\share`, `C:\work\link`, "user", "pw"))
	wants(t, err, fs.ErrExist, "make link")
	if diff := cmp.Diff([]string{created, removed + " mapping"}, methods(f)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAMappingIsUndoneAlsoIfTheCallerHasGone(t *testing.T) {
	s, f, g := newShares(t)
	ctx, cancel := context.WithCancel(t.Context())
	f.answers[created] = func() answer { g.write("C/work/link"); cancel(); return answer{} }
	wants(t, s.NewSMBGlobalMapping(ctx, mapping(t, g, `\\server\share`, `C:\work\link`, "user", "pw")), fs.ErrExist)
	if len(f.classes[smbMapping]) != 0 {
		t.Error("the mapping is still there")
	}
}

func TestAMappingThatOthersUseIsNotUndone(t *testing.T) {
	s, f, g := newShares(t)
	mapped(f, uint64(2), "1") // it was there, and is mapped again
	f.answers[created] = func() answer { g.write("C/work/link"); return answer{} }
	wants(t, s.NewSMBGlobalMapping(t.Context(), mapping(t, g, `\\server\share`, `C:\work\link`, "user", "pw")), fs.ErrExist)
	if len(f.classes[smbMapping]) != 1 {
		t.Error("the mapping went")
	}
}

func TestIsSymlinkAsksTheSystemAboutSharesAndNeverTheServer(t *testing.T) {
	tests := []struct {
		name, text string
		status     any
		want       bool
		kind       error
	}{
		{"a link to a mapped share", `\\server\share\Sub`, uint64(0), true, nil},
		{"a link of the old servers", `\\?\\\server\share\Sub\`, uint64(0), true, nil},
		{"a link to a share that has gone", `\\server\share\Sub`, uint64(2), false, nil},
		{"a link to a share of which nothing is known", `\\server\share\Sub`, nil, false, nil},
		{"a link to a share that is not mapped", `\\evil\share\Sub`, uint64(0), false, nil},
		{"a link to another share of the server", `\\server\share2`, uint64(0), false, nil},
		{"a link to a whole machine", `\\server\c$`, uint64(0), false, fs.ErrPermission},
		{"a link to no share", `\\server`, uint64(0), false, fs.ErrPermission},
		{"a link up from a share", `\\server\share\..\..\evil\share`, uint64(0), false, fs.ErrPermission},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s, f, g := newShares(t)
			mapped(f, test.status, "0")
			s.network = silence{t}
			g.link("C/work/link", test.text)
			is, err := (&Filesystem{g.places(), s.reach, fakeMounts{g}}).IsSymlink(t.Context(), g.path(`C:\work\link`))
			if is != test.want {
				t.Errorf("got %t", is)
			}
			wants(t, err, test.kind)
		})
	}
	s, f, g := newShares(t)
	f.fails[smbMapping] = errors.New("lost")
	g.link("C/work/link", `\\server\share`)
	_, err := (&Filesystem{g.places(), s.reach, fakeMounts{g}}).IsSymlink(t.Context(), g.path(`C:\work\link`))
	wants(t, err, f.fails[smbMapping])
}

// silence is a network that nobody may look at.
type silence struct{ t *testing.T }

func (n silence) Answers(path string) (bool, error) {
	n.t.Errorf("%s was looked at", path)
	return false, nil
}
