package admission

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/core/pipepath"
)

// recorded is the record of a pod as its line has it, and the answer.
func recorded(t *testing.T, p Parameters, pod *corev1.Pod) (*audit.Event, Result) {
	t.Helper()
	kept := &ledger{}
	r := newReviewer(t, p, func(o *ReviewerOptions) { o.Audit = kept })
	res := r.Review(t.Context(), createRequest(t, pod))
	if len(kept.events) != 1 {
		t.Fatalf("%d records", len(kept.events))
	}
	e, err := audit.Fit(kept.events[0])
	if err != nil {
		t.Fatal(err)
	}
	return &e, res
}

func valuesOf(e *audit.Event) (values []string) {
	for _, t := range e.What.Targets {
		values = append(values, t.Value)
	}
	return values
}

// decoys are n paths that form makes.
func decoys(n int, form string) (paths []string) {
	for i := range n {
		paths = append(paths, fmt.Sprintf(form, i))
	}
	return paths
}

// The author of an object chooses which paths come before the guarded pipe.
func TestNoNumberOfOtherMountsHidesAGuardedPipeFromTheRecord(t *testing.T) {
	permitted := DefaultParameters()
	permitted.AllowedNamespaces = map[string]Subjects{"team-a": {ServiceAccounts: []string{"builder"}}}
	lenient := DefaultParameters()
	lenient.Requirement = PrivilegedOrAllowedNamespace
	ignoring := permitted
	ignoring.EqualPower = ActionIgnore
	for name, c := range map[string]struct {
		p       Parameters
		change  func(*corev1.Pod)
		allowed bool
	}{
		"denied":                       {DefaultParameters(), func(*corev1.Pod) {}, false},
		"privileged":                   {lenient, privileged, true},
		"permitted":                    {permitted, func(*corev1.Pod) {}, true},
		"permitted, power disregarded": {ignoring, func(*corev1.Pod) {}, true},
		"not mounted": {DefaultParameters(), func(p *corev1.Pod) {
			mounts := p.Spec.Containers[0].VolumeMounts
			p.Spec.Containers[0].VolumeMounts = mounts[:len(mounts)-1]
		}, false},
	} {
		for kind, form := range map[string]string{"pipes": `\\.\pipe\log-%d`, "equal power": `C:\Windows\%d`, "long": `\\.\pipe\` + strings.Repeat("x", 1000) + `%d`} {
			for _, n := range []int{15, 16, 17, 300} {
				t.Run(fmt.Sprintf("%s/%s/%d", name, kind, n), func(t *testing.T) {
					e, res := recorded(t, c.p, with(testPod(append(decoys(n, form), csiPipe)...), c.change))
					if res.Allowed != c.allowed {
						t.Fatalf("allowed %t: %s", res.Allowed, res.Message)
					}
					if values := valuesOf(e); values[0] != csiPipe {
						t.Errorf("the record names %.200q", values)
					}
					if want := min(max(0, n+1-maxTargets), audit.MaxMoreTargets); e.What.MoreTargets != want {
						t.Errorf("%d more targets, want %d", e.What.MoreTargets, want)
					}
				})
			}
		}
	}
}

func TestARecordNamesATargetOnce(t *testing.T) {
	pod := testPod(`\\.\pipe\printer`, csiPipe)
	for i := range 20 {
		c := *pod.Spec.Containers[0].DeepCopy()
		c.Name = fmt.Sprint("copy", i)
		pod.Spec.Containers = append(pod.Spec.Containers, c)
	}
	e, _ := recorded(t, DefaultParameters(), pod)
	if values := valuesOf(e); !slices.Equal(values, []string{csiPipe, `\\.\pipe\printer`}) || e.What.MoreTargets != 0 {
		t.Errorf("%q and %d more", values, e.What.MoreTargets)
	}
}

func TestARecordSaysHowManyGuardedPipesItDoesNotName(t *testing.T) {
	guarded := decoys(40, `\\.\pipe\csi-proxy-%02d`)
	e, _ := recorded(t, DefaultParameters(), testPod(append([]string{`\\.\pipe\printer`}, guarded...)...))
	if values := valuesOf(e); !slices.Equal(values, guarded[:maxTargets]) || e.What.MoreTargets != 25 {
		t.Errorf("%q and %d more", values, e.What.MoreTargets)
	}
	// What has no room even so is cut from the end, and counted beside.
	e, _ = recorded(t, DefaultParameters(), testPod(decoys(40, `\\.\pipe\csi-proxy-`+strings.Repeat("x", 1000)+`%02d`)...))
	last := e.What.Targets[len(e.What.Targets)-1]
	if last.Kind != "cut" || !strings.HasPrefix(e.What.Targets[0].Value, `\\.\pipe\csi-proxy-`) || e.What.MoreTargets != 24 {
		t.Errorf("%q and %d more", valuesOf(e), e.What.MoreTargets)
	}
}

// One pipe has as many spellings as its name has letters, and more that lie below it.
func TestSpellingsOfOneGuardedPipeDoNotHideAnother(t *testing.T) {
	lenient := DefaultParameters()
	lenient.Requirement = PrivilegedOrAllowedNamespace
	const smb = "csi-proxy-smb-v1"
	var spellings []string
	for i := range len(smb) {
		spellings = append(spellings, "//./pipe/"+strings.ToUpper(smb[:i])+smb[i:], pipeRoot+strings.Repeat("LOCAL/", i)+smb)
	}
	for name, paths := range map[string][]string{"spellings": spellings, "below it": decoys(20, pipeRoot+smb+`\%d`)} {
		e, res := recorded(t, lenient, with(testPod(append(paths, csiPipe)...), privileged))
		if values := valuesOf(e); !res.Allowed || len(values) != maxTargets || values[0] != paths[0] || values[1] != csiPipe || e.What.MoreTargets == 0 {
			t.Errorf("%s: allowed %t, %q and %d more", name, res.Allowed, values, e.What.MoreTargets)
		}
	}
}

// In the order of codes, PG010 comes after PG008, of which there can be any number.
func TestFindingsAboutOtherPathsComeBehindThoseAboutGuardedPipes(t *testing.T) {
	policies := governedBy()
	policies.Parameters.EqualPower = ActionDeny
	r := newReviewer(t, policies.Parameters, func(o *ReviewerOptions) { o.Engine = newPolicyEngine(t, policies, nil) })
	res := r.Review(t.Context(), createRequest(t, testPod(append(decoys(30, `C:\Windows\%02d`), csiPipe)...)))
	if res.Allowed || res.Code != "PG010" || res.Causes[0].Type != "PG010" || !strings.Contains(res.Message, "\nPG010: ") {
		t.Errorf("code %s, causes begin with %s: %s", res.Code, res.Causes[0].Type, res.Message)
	}
	var previous string
	for _, f := range res.Findings[1:] {
		if f.Code != "PG008" || f.Field < previous {
			t.Errorf("%s at %s behind %s", f.Code, f.Field, previous)
		}
		previous = f.Field
	}

	ends := governedBy(until(clock.AddDate(0, 0, 3)))
	ends.Parameters.EqualPower = ActionWarn
	r = newReviewer(t, ends.Parameters, func(o *ReviewerOptions) { o.Engine = newPolicyEngine(t, ends, nil) })
	res = r.Review(t.Context(), createRequest(t, in("drivers", "node-sa", testPod(append(decoys(9, `C:\Windows\%02d`), csiPipe)...))))
	if !res.Allowed || len(res.Warnings) != maxWarnings+1 || !strings.HasPrefix(res.Warnings[0], "PG009") {
		t.Errorf("allowed %t, warnings %q", res.Allowed, res.Warnings)
	}
}

// A volume of a harmless path can lead to a powerful one by its subPath.
func TestARecordNamesWhatASubPathAdds(t *testing.T) {
	for _, n := range []int{3, 20} {
		pod := testPod(`C:\`)
		c := &pod.Spec.Containers[0]
		mount := c.VolumeMounts[0]
		c.VolumeMounts = nil
		for i, subPath := range append(decoys(n, "data-%d"), `Windows\System32`) {
			m := mount
			m.SubPath, m.MountPath = subPath, fmt.Sprintf(`C:\m%d`, i)
			c.VolumeMounts = append(c.VolumeMounts, m)
		}
		e, res := recorded(t, DefaultParameters(), pod)
		isNamed := slices.Contains(valuesOf(e), `C:\Windows\System32`)
		if more := max(0, n+1-maxTargets); !res.Allowed || len(e.What.Targets)+e.What.MoreTargets != n+1 || e.What.MoreTargets != more || more == 0 && !isNamed {
			t.Errorf("%d others: allowed %t, targets %q and %d more", n, res.Allowed, valuesOf(e), e.What.MoreTargets)
		}
	}
	for _, tt := range []struct{ path, subPath, want string }{
		{`C:\etc`, "kubernetes", `C:\etc\kubernetes`}, {`C:\data\`, `..\Windows`, `C:\data\..\Windows`}, {"/etc", "kubernetes", "/etc/kubernetes"}, {`\\.\pipe`, `csi-proxy-disk-v1`, `\\.\pipe\csi-proxy-disk-v1`},
	} {
		if got, isWhole := (entry{Target: &Target{Path: tt.path}, subPath: tt.subPath}).written(); got != tt.want || !isWhole {
			t.Errorf("%s and %s: %s", tt.path, tt.subPath, got)
		}
	}
}

// What a record has no room for is marked, so that a reader knows of it, however it is spread over path and subPath.
func TestARecordMarksWhatItCutsOffAPath(t *testing.T) {
	for _, tt := range []struct {
		kind          pipepath.Kind
		path, subPath string
		canonical     string // of the volume's path
		isWhole       bool
	}{
		{pipepath.KindPath, `C:\etc`, "kubernetes", `C:\etc`, true},
		{pipepath.KindPath, `C:\etc`, strings.Repeat("x", maxWritten-len(`C:\etc\`)), `C:\etc`, true},
		{pipepath.KindPath, `C:\etc`, strings.Repeat("x", maxWritten-len(`C:\etc\`)+1), `C:\etc`, false},
		{pipepath.KindPath, `C:\etc`, "kubernetes" + strings.Repeat("/.", 2100), `C:\etc`, false},
		{pipepath.KindPath, `C:\` + strings.Repeat("é", 2100), "", `C:\`, false},
		{pipepath.KindPath, `C:\` + strings.Repeat("x", 9000), strings.Repeat("y", 9000), `C:\`, false},
		{pipepath.KindPipeRoot, `\\.\pipe`, "csi-proxy-disk-v1" + strings.Repeat("/.", 2100), `\\.\pipe`, false},
		{pipepath.KindPipe, csiPipe, strings.Repeat("x", 5000), csiPipe, false},
	} {
		got, isWhole := (entry{Target: &Target{Kind: string(tt.kind), Path: tt.path, Canonical: tt.canonical}, subPath: tt.subPath}).target()
		missing := len(tt.path) + len(tt.subPath) - len(got.Value)
		if tt.subPath != "" {
			missing++
		}
		beginning, mark, isCut := strings.Cut(got.Value, "[")
		if isWhole != tt.isWhole || isCut == tt.isWhole || !utf8.ValidString(got.Value) || len(got.Value) > maxWritten+30 || isCut && mark != fmt.Sprintf("%d bytes cut]", missing+len("[")+len(mark)) {
			t.Errorf("%.20s and %.20s: %d bytes ending in %s, whole %t", tt.path, tt.subPath, len(got.Value), mark, isWhole)
		}
		wantCanonical := map[pipepath.Kind]string{pipepath.KindPath: got.Value, pipepath.KindPipe: csiPipe, pipepath.KindPipeRoot: ""}[tt.kind]
		if tt.subPath == "" {
			wantCanonical = tt.canonical
		}
		if !strings.HasPrefix(tt.path, beginning[:min(len(beginning), len(tt.path))]) || got.Canonical != wantCanonical {
			t.Errorf("%.20s and %.20s: canonical %.40s", tt.path, tt.subPath, got.Canonical)
		}
	}
}

// What a mount adds to a path of megabytes is not joined to it thousands of times.
func TestLongPathsOfManyMountsCostARecordLittle(t *testing.T) {
	in := &Input{}
	path := `\\.\pipe\` + strings.Repeat("x", 1<<20)
	for i := range 2000 {
		in.Mounts = append(in.Mounts, Mount{SubPath: fmt.Sprint(i), Target: Target{Kind: "pipe", Path: path, Pipe: path, Guarded: true}})
	}
	took := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if named, more := targets(in, nil); len(named) != maxTargets || more != audit.MaxMoreTargets {
				b.Errorf("%d named, %d more", len(named), more)
			}
		}
	})
	if took.AllocedBytesPerOp() > 4<<20 {
		t.Errorf("%d bytes were allocated", took.AllocedBytesPerOp())
	}
}
