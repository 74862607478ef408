package windows

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pipeguard/pipeguard/internal/audit"
)

func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	t.Cleanup(cancel)
	return ctx
}

func TestEveryVersionActsOnTheDisk(t *testing.T) {
	p := start(t)
	for _, version := range versions {
		if version == "v1" {
			continue // whose rule is narrower: TestARuleHoldsForItsOperationsAlone
		}
		t.Run(version, func(t *testing.T) {
			d, ctx := dial(t, version), bounded(t)
			rel := filepath.Join("plugins", version, "stage")
			path := p.path(rel)
			for range 2 { // made again, it is success
				if err := d.mkdir(ctx, path); err != nil || !p.has(rel) {
					t.Fatalf("mkdir: %v, on the disk: %t", err, p.has(rel))
				}
			}
			for _, ask := range []struct {
				rel  string
				want bool
			}{{rel, true}, {rel + `\nothing`, false}} {
				if got, err := d.exists(ctx, p.path(ask.rel)); err != nil || got != ask.want {
					t.Errorf("exists %s: %t, %v", ask.rel, got, err)
				}
			}
			if is, err := d.isLink(ctx, path); err != nil || is {
				t.Errorf("a directory is a link: %t, %v", is, err)
			}
			if _, err := d.isLink(ctx, path+`\nothing`); status.Code(err) != codes.NotFound {
				t.Errorf("nothing is a link: %v", err)
			}
			d.linkIsHonest(ctx, t, p, rel)
			p.mkdir(rel + `\sub\deep`)
			if err := d.rmdir(ctx, path); err == nil || !p.has(rel+`\sub\deep`) {
				t.Errorf("rmdir of a full directory: %v", err)
			}
			if d.empty != nil {
				if err := d.empty(ctx, path); err != nil || p.has(rel+`\sub`) || !p.has(rel) {
					t.Errorf("empty: %v", err)
				}
				p.mkdir(rel + `\sub`)
			}
			if err := d.rmdirAll(ctx, path); err != nil || p.has(rel) {
				t.Errorf("rmdir by force: %v, still there: %t", err, p.has(rel))
			}
			p.mkdir(rel)
			if err := d.rmdir(ctx, path); err != nil || p.has(rel) {
				t.Errorf("rmdir: %v, still there: %t", err, p.has(rel))
			}
			p.ended(t, version, "Mkdir", path, audit.ResultOK)
		})
	}
	p.reconciles()
}

// linkIsHonest makes a link. Wine makes none: then the answer must be an error and the disk as it was.
func (d driver) linkIsHonest(ctx context.Context, t *testing.T, p *proxy, rel string) {
	t.Helper()
	target := rel + "-link"
	err := d.link(ctx, p.path(rel), p.path(target))
	if (err == nil) != p.has(target) {
		t.Errorf("%s: %v, on the disk: %t", d.linkMethod, err, p.has(target))
	}
	if err == nil {
		if is, err := d.isLink(ctx, p.path(target)); err != nil || !is {
			t.Errorf("the link is none: %v", err)
		}
		if err := os.Remove(p.path(target)); err != nil {
			t.Error(err)
		}
	}
}

// ended checks the two records of a call that was let through.
func (p *proxy) ended(t *testing.T, version, method, path, result string) {
	t.Helper()
	intent, end := p.terminal("/"+version+".Filesystem/"+method, path)
	if intent == nil || intent.ID != end.ID || end.IntentSeq != intent.Seq || intent.Seq >= end.Seq {
		t.Errorf("intent %+v does not belong to %+v", intent, end)
	}
	if end.Outcome == nil || end.Outcome.Result != result {
		t.Errorf("outcome %+v, want %s", end.Outcome, result)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if who := end.Who; who == nil || who.Process == nil || int(who.Process.PID) != os.Getpid() || !strings.EqualFold(who.Process.Exe, self) ||
		who.User == nil || !strings.HasPrefix(who.User.SID, "S-1-5-") {
		t.Errorf("the caller is recorded as %+v", who)
	}
}

func TestARuleHoldsForItsOperationsAlone(t *testing.T) {
	p := start(t)
	d, ctx := dial(t, "v1"), bounded(t)
	if err := d.mkdir(ctx, p.path("made")); err != nil || !p.has("made") {
		t.Fatalf("mkdir: %v, on the disk: %t", err, p.has("made"))
	}
	refused := map[string]error{
		"Rmdir":          d.rmdir(ctx, p.path("made")),
		"Rmdir by force": d.rmdirAll(ctx, p.path("made")),
		"CreateSymlink":  d.link(ctx, p.path("made"), p.path("link")),
	}
	for name, err := range refused {
		if status.Code(err) != codes.PermissionDenied {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !p.has("made") || p.has("link") {
		t.Error("a denied call was carried out")
	}
	intent, end := p.terminal("/v1.Filesystem/Rmdir", p.path("made"))
	if intent != nil || end.Decision == nil || end.Decision.Effect != audit.EffectDeny || end.Outcome.Result != audit.ResultDenied {
		t.Errorf("recorded as %+v, decision %+v, outcome %+v", intent, end.Decision, end.Outcome)
	}
	p.reconciles()
}

func TestAnotherProgramIsDenied(t *testing.T) {
	p := start(t)
	for _, method := range []string{"PathExists", "Mkdir", "RmdirContents"} {
		stranger := p.call(bounded(t), environment(t, "PIPEGUARD_STRANGER"), method, p.path("stranger"))
		if err := stranger.Wait(); err != nil {
			t.Fatalf("%v: %s", err, stranger.Stderr.String())
		}
		if got := strings.TrimSpace(stranger.Stdout.String()); got != codes.PermissionDenied.String() {
			t.Errorf("%s: got %q", method, got)
		}
		_, end := p.terminal("/v2alpha1.Filesystem/"+method, p.path("stranger"))
		if end.Outcome.Result != audit.ResultDenied || !strings.EqualFold(end.Who.Process.Exe, os.Getenv("PIPEGUARD_STRANGER")) || int(end.Who.Process.PID) != stranger.PID() {
			t.Errorf("%s is recorded as %+v by %+v", method, end.Outcome, end.Who.Process)
		}
	}
	if p.has("stranger") {
		t.Error("a denied call was carried out")
	}
	// The same program under the name that the rule has is let in, so it was the name that was refused.
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	friend := p.call(bounded(t), self, "Mkdir", p.path("friend"))
	if err := friend.Wait(); err != nil || strings.TrimSpace(friend.Stdout.String()) != codes.OK.String() || !p.has("friend") {
		t.Errorf("%v: %s%s", err, friend.Stdout.String(), friend.Stderr.String())
	}
}

func TestPathsOutsideAreRefused(t *testing.T) {
	p := start(t)
	d, ctx := dial(t, "v2alpha1"), bounded(t)
	outside := filepath.Join(filepath.Dir(p.kubelet), "outside")
	if err := os.MkdirAll(filepath.Join(outside, "full"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{
		"a neighbour":               outside,
		"beneath a neighbour":       outside + `\full`,
		"a longer name":             p.kubelet + `-evil`,
		"a way up":                  p.kubelet + `\..\outside`,
		"a stream":                  p.kubelet + `\x:stream`,
		"a device name":             p.kubelet + `\CON`,
		"a dot at the end":          p.kubelet + `\x.`,
		"a share":                   `\\127.0.0.1\share\x`,
		"a long name of a device":   `\\?\` + p.kubelet + `\x`,
		"no drive":                  strings.TrimPrefix(p.kubelet, "C:") + `\x`,
		"a relative path":           `x`,
		"nothing":                   ``,
		"a Kelvin sign for a k":     strings.Replace(p.kubelet, "kubelet", "\u212Aubelet", 1) + `\x`,
		"a line end":                p.kubelet + "\\x\nforged",
		"a path that is far longer": p.kubelet + `\` + strings.Repeat(`x\`, 3000) + `x`,
	} {
		t.Run(name, func(t *testing.T) {
			_, existsErr := d.exists(ctx, path)
			_, isLinkErr := d.isLink(ctx, path)
			for method, err := range map[string]error{
				"Mkdir": d.mkdir(ctx, path), "Rmdir": d.rmdirAll(ctx, path), "RmdirContents": d.empty(ctx, path),
				"PathExists": existsErr, "IsSymlink": isLinkErr,
				"CreateSymlink at": d.link(ctx, p.path("x"), path), "CreateSymlink from": d.link(ctx, path, p.path("x")),
			} {
				if code := status.Code(err); code != codes.InvalidArgument && code != codes.PermissionDenied {
					t.Errorf("%s: %v", method, err)
				}
			}
		})
	}
	if _, err := os.Lstat(filepath.Join(outside, "full")); err != nil || p.has("x") {
		t.Errorf("something was done: %v", err)
	}
	p.reconciles()
}
