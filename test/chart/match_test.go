package chart_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/core/pipepath"
	"github.com/pipeguard/pipeguard/internal/entries"
)

func configuration(t *testing.T, all []object, name string) admissionregistrationv1.ValidatingWebhookConfiguration {
	t.Helper()
	return decode[admissionregistrationv1.ValidatingWebhookConfiguration](t, one(t, all, "ValidatingWebhookConfiguration", name))
}

// isHostEntry says whether an entry is for objects that could reach no pipe, and isProcessEntry whether it is for HostProcess containers among them.
func isHostEntry(name string) bool {
	return strings.HasPrefix(name, entries.PathPrefix) || isProcessEntry(name)
}

func isProcessEntry(name string) bool { return strings.HasPrefix(name, entries.ProcessPrefix) }

func TestTheConfigurationIsClosedAndCannotBeSidestepped(t *testing.T) {
	for rendering, all := range renderings(t) {
		objects, policies := configuration(t, all, fullname(rendering)+"-webhook"), configuration(t, all, fullname(rendering)+"-policies")
		for _, w := range slices.Concat(objects.Webhooks, policies.Webhooks) {
			if w.NamespaceSelector != nil || w.ObjectSelector != nil {
				t.Errorf("%s: %s has a selector: whoever sets labels could exempt objects", rendering, w.Name)
			}
			if want := admissionregistrationv1.Fail; *w.FailurePolicy != want && rendering != "everything" && !isHostEntry(w.Name) {
				t.Errorf("%s: %s lets pass what nobody judged", rendering, w.Name)
			}
			if *w.MatchPolicy != admissionregistrationv1.Equivalent || *w.SideEffects != admissionregistrationv1.SideEffectClassNone {
				t.Errorf("%s: %s matches %s, side effects %s", rendering, w.Name, *w.MatchPolicy, *w.SideEffects)
			}
			if w.ClientConfig.CABundle != nil {
				t.Errorf("%s: %s has a caBundle: an upgrade would replace the one in use", rendering, w.Name)
			}
			if w.Rules != nil {
				t.Errorf("%s: %s has rules: an installation without replicas would refuse what it asks about", rendering, w.Name)
			}
		}
		if *policies.Webhooks[0].FailurePolicy != admissionregistrationv1.Fail {
			t.Errorf("%s: policy objects pass unjudged", rendering)
		}
	}
	if w := configuration(t, render(t), "pipeguard-webhook").Webhooks; *w[0].TimeoutSeconds != 3 {
		t.Errorf("the API server waits %d s", *w[0].TimeoutSeconds)
	}
}

// The webhook tells by it that another hand has changed what the chart made.
func TestTheDigestOfTheEntriesIsTheProgramsOwn(t *testing.T) {
	digests := map[string]bool{}
	for rendering, all := range renderings(t) {
		for _, name := range []string{"-webhook", "-policies"} {
			c := configuration(t, all, fullname(rendering)+name)
			want, err := entries.Digest(c.Webhooks)
			if err != nil {
				t.Fatal(err)
			}
			if got := c.Annotations[entries.DigestAnnotation]; got != want {
				t.Errorf("%s: %s: digest %s, want %s", rendering, c.Name, got, want)
			}
			digests[want] = true
		}
	}
	if len(digests) < 3 {
		t.Errorf("only %d digests: they are of little", len(digests))
	}
}

// azureLeaves is the label, or annotation, of configurations that the admissions enforcer of AKS leaves alone:
// https://learn.microsoft.com/en-us/azure/aks/faq#can-admission-controller-webhooks-impact-kube-system-and-internal-aks-namespaces
const azureLeaves = "admissions.enforcer/disabled"

func TestTheConfigurationsAreLeftAloneByAzure(t *testing.T) {
	for rendering, all := range renderings(t) {
		for _, name := range []string{"-webhook", "-policies"} {
			c := configuration(t, all, fullname(rendering)+name)
			if c.Labels[azureLeaves] != "true" || c.Annotations[azureLeaves] != "true" {
				t.Errorf("%s: %s has the labels %v and annotations %v", rendering, c.Name, c.Labels, c.Annotations)
			}
		}
	}
}

func TestWhatReachesNoPipeIsLetPassWhereItWouldOnlyBeRecorded(t *testing.T) {
	for name, c := range map[string]struct {
		values              []string
		pipe, path, process admissionregistrationv1.FailurePolicyType
	}{
		"the defaults":                   {nil, "Fail", "Ignore", "Ignore"},
		"warnings":                       {[]string{"parameters.hostProcess=Warn", "parameters.equalPower=Warn", "parameters.hostPaths=Warn"}, "Fail", "Ignore", "Ignore"},
		"HostProcess is refused":         {[]string{"parameters.hostProcess=Deny"}, "Fail", "Ignore", "Fail"},
		"host paths are refused":         {[]string{"parameters.hostPaths=Deny"}, "Fail", "Fail", "Ignore"},
		"paths of equal power":           {[]string{"parameters.equalPower=Deny"}, "Fail", "Fail", "Ignore"},
		"both":                           {[]string{"parameters.hostProcess=Deny", "parameters.hostPaths=Deny"}, "Fail", "Fail", "Fail"},
		"refused, and open":              {[]string{"parameters.hostProcess=Deny", "webhook.failurePolicy=Ignore"}, "Ignore", "Ignore", "Ignore"},
		"modules of one's own":           {[]string{"webhook.hostFailurePolicy=Fail"}, "Fail", "Fail", "Fail"},
		"refused, and open for the host": {[]string{"parameters.hostProcess=Deny", "webhook.hostFailurePolicy=Ignore"}, "Fail", "Ignore", "Ignore"},
	} {
		for _, w := range configuration(t, render(t, set(c.values...)...), "pipeguard-webhook").Webhooks {
			want := c.pipe
			if isProcessEntry(w.Name) {
				want = c.process
			} else if isHostEntry(w.Name) {
				want = c.path
			}
			if *w.FailurePolicy != want {
				t.Errorf("%s: %s has %s", name, w.Name, *w.FailurePolicy)
			}
		}
	}
}

// Each entry is one for which the program has rules, and each of the program's has its entries.
func TestEveryRouteIsAskedAbout(t *testing.T) {
	all := render(t)
	var got, want []string
	for _, w := range configuration(t, all, "pipeguard-webhook").Webhooks {
		if got = append(got, w.Name); *w.ClientConfig.Service.Path != "/validate" {
			t.Errorf("%s: path %s", w.Name, *w.ClientConfig.Service.Path)
		}
	}
	for entry, resources := range admission.Entries() {
		want = append(want, entry+".pipeguard.dev", entries.PathPrefix+entry+".pipeguard.dev")
		if resources[0].Namespaced {
			want = append(want, entries.ProcessPrefix+entry+".pipeguard.dev")
		}
	}
	for _, name := range append(slices.Clone(got), configuration(t, all, "pipeguard-policies").Webhooks[0].Name) {
		if _, ok := entries.RulesOf(name); !ok {
			t.Errorf("the program has no rules for %s", name)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The entries of a place ask for the same kinds of pods, and none for what another of them asks for. What could do both goes
// to the one that fails closed.
func TestTheEntriesOfAPlaceExcludeEachOther(t *testing.T) {
	for name, c := range map[string]struct {
		values     []string
		pathsFirst bool
	}{
		"the defaults":           {nil, false},
		"HostProcess is refused": {[]string{"parameters.hostProcess=Deny"}, false},
		"host paths are refused": {[]string{"parameters.hostPaths=Deny"}, true},
		"paths of equal power":   {[]string{"parameters.equalPower=Deny"}, true},
		"both":                   {[]string{"parameters.hostProcess=Deny", "parameters.hostPaths=Deny"}, false},
		"open for the host":      {[]string{"parameters.hostPaths=Deny", "webhook.hostFailurePolicy=Ignore"}, false},
	} {
		all := map[string]map[string]string{}
		for _, w := range configuration(t, render(t, set(c.values...)...), "pipeguard-webhook").Webhooks {
			all[w.Name] = map[string]string{}
			for _, c := range w.MatchConditions {
				all[w.Name][c.Name] = c.Expression
			}
		}
		for entry, pipe := range all {
			if isHostEntry(entry) {
				continue
			}
			windows, noPipe := pipe["may-run-on-windows"], "!("+pipe["could-reach-a-pipe"]+")"
			path, process := all[entries.PathPrefix+entry], all[entries.ProcessPrefix+entry]
			wantPath := map[string]string{"could-reach-no-pipe": noPipe, "could-reach-a-host-path": path["could-reach-a-host-path"]}
			var wantProcess map[string]string
			if isOfPods := entry != "persistentvolumes.pipeguard.dev"; isOfPods {
				wantPath["may-run-on-windows"] = windows
				wantProcess = map[string]string{"may-run-on-windows": windows, "could-reach-no-pipe": noPipe, "could-be-a-host-process": process["could-be-a-host-process"]}
				if c.pathsFirst {
					wantProcess["could-reach-no-host-path"] = "!(" + path["could-reach-a-host-path"] + ")"
				} else {
					wantPath["could-be-no-host-process"] = "!(" + process["could-be-a-host-process"] + ")"
				}
			}
			if diff := cmp.Diff(wantPath, path); diff != "" || path["could-reach-a-host-path"] == "" {
				t.Errorf("%s: host-%s (-want +got):\n%s", name, entry, diff)
			}
			if diff := cmp.Diff(wantProcess, process); diff != "" {
				t.Errorf("%s: hostprocess-%s (-want +got):\n%s", name, entry, diff)
			}
		}
	}
}

// conditionPaths are the parts of the conditions that say of a path that it leads to no pipe, and of such a path that it is asked about
// nevertheless, as the API server would apply them. A path with more characters than longest leads anywhere.
type conditionPaths struct {
	longest             int
	form, device, drive *regexp.Regexp
	host                *regexp.Regexp
}

var (
	conditionNoPipe = regexp.MustCompile(`path\.size\(\) <= (\d+) && !path\.contains\('\.\.'\) && \(path\.startsWith\('/'\) \?\s+` +
		`path\.matches\(r'([^']+)'\) && !path\.matches\(r'([^']+)'\) :\s+path\.matches\(r'([^']+)'\)\)`)
	conditionHost = regexp.MustCompile(`path\.size\(\) <= (\d+) && \(path == '/' \|\| !path\.startsWith\('/'\) \|\| path\.matches\(r'([^']+)'\)\)`)
)

// pathsOf reads the expressions from the conditions, which must all have the same.
func pathsOf(t *testing.T, all []object) conditionPaths {
	t.Helper()
	found := map[string][]string{}
	for _, w := range configuration(t, all, "pipeguard-webhook").Webhooks {
		for _, c := range w.MatchConditions {
			form := map[string]*regexp.Regexp{"could-reach-a-pipe": conditionNoPipe, "could-reach-no-pipe": conditionNoPipe, "could-reach-a-host-path": conditionHost}[c.Name]
			if form == nil {
				continue
			}
			m := form.FindStringSubmatch(c.Expression)
			if m == nil {
				t.Fatalf("%s has another condition %s:\n%s", w.Name, c.Name, c.Expression)
			}
			if before := found[form.String()]; before != nil && !slices.Equal(before, m[1:]) {
				t.Fatalf("%s has another idea of paths: %q, not %q", w.Name, m[1:], before)
			}
			found[form.String()] = m[1:]
		}
	}
	noPipe, host := found[conditionNoPipe.String()], found[conditionHost.String()]
	longest, err := strconv.Atoi(noPipe[0])
	if err != nil || host[0] != noPipe[0] {
		t.Fatalf("the longest path has %s or %s characters: %v", noPipe[0], host[0], err)
	}
	return conditionPaths{longest, regexp.MustCompile(noPipe[1]), regexp.MustCompile(noPipe[2]), regexp.MustCompile(noPipe[3]), regexp.MustCompile(host[1])}
}

func (p conditionPaths) leadsToNoPipe(path string) bool {
	if utf8.RuneCountInString(path) > p.longest || strings.Contains(path, "..") {
		return false
	}
	if strings.HasPrefix(path, "/") {
		return p.form.MatchString(path) && !p.device.MatchString(path)
	}
	return p.drive.MatchString(path)
}

func (p conditionPaths) isHost(path string) bool {
	return path == "/" || !strings.HasPrefix(path, "/") || p.host.MatchString(path)
}

// oddSubPath has the expression for subPaths that are not sent. One with more characters than longest is sent.
type oddSubPath struct {
	longest int
	form    *regexp.Regexp
}

var conditionSubPath = regexp.MustCompile(`has\(mount\.(\w+)\) && \(mount\.(\w+)\.size\(\) > (\d+) \|\| ofRoot && mount\.(\w+)\.size\(\) > 0 \|\| !mount\.(\w+)\.matches\(r'([^']+)'\)\)`)

// pipeCondition is the condition about pipes of an entry, or that there is none.
func pipeCondition(t *testing.T, w *admissionregistrationv1.ValidatingWebhook) string {
	t.Helper()
	for _, c := range w.MatchConditions {
		if c.Name == "could-reach-a-pipe" || c.Name == "could-reach-no-pipe" {
			return c.Expression
		}
	}
	t.Fatalf("%s has no condition about pipes", w.Name)
	return ""
}

// oddSubPaths reads the expression from the conditions, which must all have the same for subPath and subPathExpr.
func oddSubPaths(t *testing.T, all []object) (odd oddSubPath) {
	t.Helper()
	for _, w := range configuration(t, all, "pipeguard-webhook").Webhooks {
		var fields []string
		for _, m := range conditionSubPath.FindAllStringSubmatch(pipeCondition(t, &w), -1) {
			if m[1] != m[2] || m[1] != m[4] || m[1] != m[5] {
				t.Errorf("%s: one field is there and another is looked at: %s", w.Name, m[0])
			}
			longest, err := strconv.Atoi(m[3])
			if err != nil || odd.form != nil && (odd.longest != longest || odd.form.String() != m[6]) {
				t.Errorf("%s has another idea of a subPath: %s, %v", w.Name, m[0], err)
			}
			fields, odd = append(fields, m[1]), oddSubPath{longest, regexp.MustCompile(m[6])}
		}
		if want := []string{"subPath", "subPathExpr"}; !strings.HasSuffix(w.Name, "persistentvolumes.pipeguard.dev") && !slices.Equal(fields, want) {
			t.Errorf("%s looks at %v of a mount", w.Name, fields)
		}
	}
	return odd
}

func (o oddSubPath) match(subPath string) bool {
	return utf8.RuneCountInString(subPath) > o.longest || !o.form.MatchString(subPath)
}

var conditionMounts = regexp.MustCompile(`volumeMounts.*\.sum\(\) > (\d+)\)`)

var conditionItems = regexp.MustCompile(`items\.value\(\)\.size\(\) > (\d+)\)`)

// An expression whose evaluation costs more than 1,000,000 is given up by the API server, and with failurePolicy Ignore the
// object passes. A tenth of the path's length times a quarter of the expression's is what k8s.io/apiserver/pkg/cel/library
// and cel-go charge for matches(); 100 covers everything else about a volume.
func TestTheConditionsCostLessThanTheAPIServerSpends(t *testing.T) {
	for _, paths := range []int{0, 1, 10, 100, 1000} {
		list := make([]string, paths)
		for i := range list {
			list[i] = fmt.Sprintf(`"C:\\Programs\\Some-Product-%d\\Secrets"`, i)
		}
		all := render(t, "--set-json", "parameters.equalPowerPaths=["+strings.Join(list, ",")+"]")
		found, odd := pathsOf(t, all), oddSubPaths(t, all)
		for _, w := range configuration(t, all, "pipeguard-webhook").Webhooks {
			if strings.HasSuffix(w.Name, "persistentvolumes.pipeguard.dev") {
				continue // it has one path
			}
			for _, c := range w.MatchConditions {
				sizes, sums := conditionItems.FindStringSubmatch(c.Expression), conditionMounts.FindStringSubmatch(c.Expression)
				if sizes == nil || sums == nil {
					t.Fatalf("%s: %s does not test sizes", w.Name, c.Name)
				}
				most, itemsErr := strconv.Atoi(sizes[1])
				mounts, mountsErr := strconv.Atoi(sums[1])
				if itemsErr != nil || mountsErr != nil {
					t.Fatal(itemsErr, mountsErr)
				}
				if cost := mounts * (20 + (odd.longest/10+1)*(len(odd.form.String())/4+1)); cost > 350_000 {
					t.Errorf("%d paths: %s: %d mounts cost %d", paths, w.Name, mounts, cost)
				}
				path, quarter := found.longest/10+1, func(e *regexp.Regexp) int { return len(e.String())/4 + 1 }
				if cost := most * (100 + path*max(quarter(found.form)+quarter(found.device), quarter(found.drive))); cost > 450_000 {
					t.Errorf("%d paths: %s: %d volumes cost %d", paths, w.Name, most, cost)
				}
				if cost := most * (100 + path*quarter(found.host)); cost > 750_000 {
					t.Errorf("%d paths: %s: %d volumes cost %d", paths, w.Name, most, cost)
				}
				if paths <= 10 && most < 100 {
					t.Errorf("%d paths: real pods have more than %d volumes", paths, most)
				}
			}
		}
	}
}

func TestWhatKeepsNodesRunningIsNotAskedAbout(t *testing.T) {
	found := pathsOf(t, render(t))
	for _, path := range []string{
		"/run/xtables.lock", "/lib/modules", "/var/run/calico", "/proc/sys/net", "/sys/fs/bpf", "/dev", "/etc/ssl/certs", "/etc/pki", "/etc/cni2",
		"/var/log", "/usr/share/ca-certificates", "/run/containerd/containerd.sock", "/home/kubernetes/bin", "/kubernetes", "/mnt/data@1", "/var/lib/x+y_z-1.2",
	} {
		if !found.leadsToNoPipe(path) || found.isHost(path) {
			t.Errorf("%s is asked about", path)
		}
	}
	for _, path := range []string{
		"/var/lib/kubelet/pods", "/var/lib/kubelet/plugins_registry/", "/var/lib/kubelet", "/VAR/LIB", "/var/", "/etc", "/etc/", "/etc/kubernetes", "/etc/kubernetes/pki",
		"/etc/cni/net.d", "/opt/cni/bin", "/opt", "/windows", "/WINDOWS/System32", "/Users/x", "/programdata", "/k", "/K/x",
		`C:\`, `c:/`, `c:/windows`, `C:\var\lib\kubelet\plugins\x`, `C:\Program Files\x`, `C:\Program Files (x86)\`, `D:\x.y`, `C:\PROGRA~1`, `C:\\var\\lib\\kubelet\\`,
	} {
		if !found.leadsToNoPipe(path) || !found.isHost(path) {
			t.Errorf("%s leads to no pipe: %t, and is asked about: %t", path, found.leadsToNoPipe(path), found.isHost(path))
		}
	}
	for _, path := range []string{
		"", "/", "//", "/.", "/./windows", "/etc./kubernetes", "/etc/./kubernetes", `C:`, `C:x`, `\`, `\x`, `CC:\x`, `C:\x\..\y`, `C:\x.\y`, `C:\x \y`, `C:\x.`, `C:\x:y`, `C:\\.\pipe\x`, `C:\$x`, `C:\\. \x`, `C:\\?\x`, "C:\\x\u00e9",
		`C:\.`, `C:\ `, "\u212a:\\x", `\\.\C:\x`, "C:\\x\n", `npipe:\\.\pipe\x`, `p:\\.\pipe\x`,
		`\\.\pipe\csi-proxy-disk-v1`, `//./pipe/csi-proxy-disk-v1`, `/\.\pipe\x`, `/c:/x`, "/device/namedpipe/x", "/Device/HarddiskVolume1",
		"/global/x", "/GLOBAL??/x", "/dosdevices/x", "/??/pipe/x", "/./device/namedpipe/x", "/././Device", "/./GLOBAL/x", "/ /device/x", "/. /device/x", "/./sessions/0", "relative", "npipe:////./pipe/x", "/WINDOW~1", "/a b", "/a\x00", "/a\n", "/ä", "/a/../b",
	} {
		if found.leadsToNoPipe(path) {
			t.Errorf("%q counts as one that leads to no pipe", path)
		}
	}
}

// FuzzNothingOfInterestIsOnAPathThatIsNotSent holds the conditions to what the webhook would say of a mount. A subPath that could
// lead out of its volume, or has characters that few files have, is sent, and so is any in a pod with the root of a node.
func FuzzNothingOfInterestIsOnAPathThatIsNotSent(f *testing.F) {
	for _, path := range []string{"/var/lib/x", "/etc/kubernetes", "/windows/system32", "/device/x", "/k/secrets", "/K", "/Data.1/x", "/.", "/a/./b", "/", "/etc", "/data.1/", "/a", "/a/b/", "/a/b/c", "/var/lib", "/var/lib/kubelet2", "/k8s", "/users",
		`C:\`, `c:/var/lib/kubelet`, `C:\Program Files (x86)\a.b`, `C:\a b\c`, `D:\x`, `C:\x~1\`, `C:\Device\NamedPipe`, `d:/??/x`, `C:`, `C:\ x`, `C:\x\ `, `C:\-`, `C:\\x\\`, `c:////device/x`} {
		for _, subPath := range []string{"", "a/b", "system32", "kubernetes", "secrets/x", "./a/.b", "/device/namedpipe/x", "NamedPipe/x", `. .\NamedPipe\x`, `.:.`, `C:\Windows`, `\\.\pipe\x`, `??\pipe\x`, "WINDOW~1"} {
			f.Add(path, subPath)
		}
	}
	guard, err := pipepath.NewGuard("*")
	if err != nil {
		f.Fatal(err)
	}
	paths := append(pipepath.DefaultPowerPaths(), `C:\k\secrets`, `c:\Data.1`, `C:\Program Files\x`, `D:\other`, `C:\a b\c`)
	powers, err := pipepath.NewPowers([]string{"*"}, paths)
	if err != nil {
		f.Fatal(err)
	}
	hosts := append(pipepath.DefaultHostPaths(), `C:\a\b\c d\e`, `C:\$x\y`)
	hostPaths, err := pipepath.NewHostPaths(hosts)
	if err != nil {
		f.Fatal(err)
	}
	var found conditionPaths
	var odd oddSubPath
	f.Fuzz(func(t *testing.T, path, subPath string) {
		if found.form == nil {
			quoted := func(paths []string) string {
				return strings.ReplaceAll(`["`+strings.Join(paths, `","`)+`"]`, `\`, `\\`)
			}
			all := render(t, "--set-json", "parameters.equalPowerPaths="+quoted(paths), "--set-json", "parameters.guardedHostPaths="+quoted(hosts))
			found, odd = pathsOf(t, all), oddSubPaths(t, all)
		}
		if isRoot := path == "/" && subPath == ""; isRoot {
			if v := guard.JudgeMount(path, subPath); v.Match {
				t.Errorf("the root of a node: %+v", v)
			}
			return
		}
		if !found.leadsToNoPipe(path) || odd.match(subPath) {
			return
		}
		if v := guard.JudgeMount(path, subPath); v.Match {
			t.Errorf("%+q with subPath %+q: %+v", path, subPath, v)
		}
		if v := guard.JudgeMountExpr(path, subPath+"$(X)"); v.Match {
			t.Errorf("%+q with subPathExpr %+q and a variable: %+v", path, subPath, v)
		}
		if v := guard.JudgeAnyMount(path); v.Match || v.Kind != pipepath.KindPath {
			t.Errorf("%+q in a PersistentVolume: %+v", path, v)
		}
		if found.isHost(path) {
			return
		}
		for name, listed := range map[string]*pipepath.Powers{"equal power": powers, "host paths": hostPaths} {
			for how, got := range map[string]pipepath.Reach{
				"in a PersistentVolume":       listed.JudgeAnyMount(path),
				"as subPath":                  listed.JudgeMount(path, subPath),
				"as subPathExpr and variable": listed.JudgeMountExpr(path, subPath+"$(X)"),
			} {
				if got != (pipepath.Reach{}) {
					t.Errorf("%s: %+q with %+q %s reaches %+v", name, path, subPath, how, got)
				}
			}
		}
	})
}
