package floor

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/pipepath"
)

var (
	plainForm, twoDotsForm, deviceForm = regexp.MustCompile(plainPath), regexp.MustCompile(twoDots), regexp.MustCompile(device)
	subPathForm, pipeForm              = regexp.MustCompile(plainSubPath), regexp.MustCompile(plainPipe)
	imageForm                          = regexp.MustCompile(imageName)
)

// plainly is what isPlain says in CEL.
func plainly(path string) bool {
	return utf8.RuneCountInString(path) <= longestPath && plainForm.MatchString(path) && !twoDotsForm.MatchString(path) && !deviceForm.MatchString(path)
}

func FuzzAPlainPathLeadsToNoPipe(f *testing.F) {
	for _, path := range []string{`C:\data`, `/var/lib/x`, `/`, `/device/x`, `\??\pipe\x`, `//./pipe/csi-proxy`, `/sessions/0/dosdevices/x`, "/\u017fessions", `npipe:x`, `C:..\x`, `/a b`, `\\.\pipe\csi-proxy-disk-v1`} {
		f.Add(path, `sub`)
		f.Add(`C:\x`, path)
	}
	guard, err := pipepath.NewGuard("*")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, path, sub string) {
		switch name := pipepath.Canonical(path); {
		case plainly(path):
			if name.Kind != pipepath.KindPath || guard.JudgeAnyMount(path).Match {
				t.Errorf("%q is plain and is a %s", path, name.Kind)
			}
			if subPathForm.MatchString(sub) && !twoDotsForm.MatchString(sub) && guard.JudgeMount(path, sub).Match {
				t.Errorf("%q with %q leads to a pipe", path, sub)
			}
		case pipeForm.MatchString(path):
			lower := strings.ToLower(path)
			if own := lower[beforeName:]; own != "local" && (name.Kind != pipepath.KindPipe || name.Pipe != own) {
				t.Errorf("%q is the %s %q", path, name.Kind, name.Pipe)
			}
		}
	})
}

func FuzzWhatIsTakenForAnImageIsOne(f *testing.F) {
	for _, image := range []string{"a", "a:b", "registry:5000/x/y:v1@sha256:" + strings.Repeat("0", 64), "a/:tag", "a-", "x:-y", "a:b/c", "x@sha256:1"} {
		f.Add(image)
	}
	f.Fuzz(func(t *testing.T, image string) {
		// The same conditions as imageKeys has in CEL.
		is := utf8.RuneCountInString(image) <= 512 && imageForm.MatchString(image) && !strings.Contains(image, "//") && !strings.Contains(image, "..") &&
			regexp.MustCompile(`[0-9A-Za-z_]$`).MatchString(image)
		if is && !access.IsImage(image) {
			t.Errorf("%q is taken for an image", image)
		}
	})
}

func TestTextIsALiteralOfCEL(t *testing.T) {
	for text, want := range map[string]string{
		"plain": `'plain'`, `a'b\c`: `'a\'b\\c'`, "line\nbreak": `'line\U0000000abreak'`, "Über": `'\U000000dcber'`, "\xff": `'\U0000fffd'`,
	} {
		if got := quote(text); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}

func TestJunctionsLeadToGuardedDirectories(t *testing.T) {
	d, err := guardedDirectories([]string{`C:\Users\admin`, `C:\ProgramData`, `D:\data`, `C:\`})
	if err != nil {
		t.Fatal(err)
	}
	related, certain := regexp.MustCompile(d.related), regexp.MustCompile(certainPath)
	for path, want := range map[string]bool{
		`c:/users/admin`: true, `c:/users/admin/x`: true, `c:/users`: true, `c:/documents and settings/admin`: true, `c:/users/all users/x`: true, `c:/programdata/x`: true, `c:/`: true,
		`d:/data/x`: true, `d:/`: true, `c:/users/other`: false, `c:/programdatax`: false, `d:/other`: false, `e:/`: false, `c:/app//data`: false, `c://programdata//x`: true,
	} {
		if got := related.MatchString(path); got != want || !certain.MatchString(path) {
			t.Errorf("%s: %t, want %t", path, got, want)
		}
	}
	for _, path := range []string{`C:\PROGRA~1`, `C:\x.`, `C:\x \y`, `C:\x:stream`, `C:x`, `C:`, `relative`, `C:\it's`, `C:\a\..\b`, "C:\\\u00fc"} {
		if certain.MatchString(path) {
			t.Errorf("%s is certain", path)
		}
	}
}

func TestAFloorOfTooManyPoliciesPermitsNothing(t *testing.T) {
	long := admission.DefaultParameters()
	for i := range 10_000 {
		long.GuardedPipes = append(long.GuardedPipes, fmt.Sprintf("pipe-%d", i))
	}
	governing := many(0)
	for i := range 5_000 {
		governing.PipePolicies[fmt.Sprintf("p%d", i)] = admission.PipePolicy{Pipes: []string{strings.Repeat("x", 200) + fmt.Sprint(i)}}
	}
	for name, p := range map[string]admission.Policies{"policies": governing, "pipes": {Parameters: long}} {
		o := Options{Name: "floor", Policies: p}
		if _, err := New(o); !errors.Is(err, ErrTooLarge) {
			t.Fatalf("%s: got %v", name, err)
		}
		f, err := Closed(o)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(f.Policies[0].Spec.Validations[3].Expression, "csi-proxy") {
			t.Errorf("%s: the closed floor still names pipes", name)
		}
	}
	if _, err := New(Options{Name: "floor", Policies: many(1500)}); err != nil {
		t.Errorf("1500 subjects: %v", err)
	}
}
