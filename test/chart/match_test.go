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

	"github.com/pipeguard/pipeguard/internal/core/pipepath"
)

func configuration(t *testing.T, all []object, name string) admissionregistrationv1.ValidatingWebhookConfiguration {
	t.Helper()
	return decode[admissionregistrationv1.ValidatingWebhookConfiguration](t, one(t, all, "ValidatingWebhookConfiguration", name))
}

func TestTheConfigurationIsClosedAndCannotBeSidestepped(t *testing.T) {
	for rendering, all := range renderings(t) {
		objects, policies := configuration(t, all, fullname(rendering)+"-webhook"), configuration(t, all, fullname(rendering)+"-policies")
		for _, w := range slices.Concat(objects.Webhooks, policies.Webhooks) {
			if w.NamespaceSelector != nil || w.ObjectSelector != nil {
				t.Errorf("%s: %s has a selector: whoever sets labels could exempt objects", rendering, w.Name)
			}
			if want := admissionregistrationv1.Fail; *w.FailurePolicy != want && rendering != "everything" {
				t.Errorf("%s: %s lets pass what nobody judged", rendering, w.Name)
			}
			if *w.MatchPolicy != admissionregistrationv1.Equivalent || *w.SideEffects != admissionregistrationv1.SideEffectClassNone {
				t.Errorf("%s: %s matches %s, side effects %s", rendering, w.Name, *w.MatchPolicy, *w.SideEffects)
			}
			if w.ClientConfig.CABundle != nil {
				t.Errorf("%s: %s has a caBundle: an upgrade would replace the one in use", rendering, w.Name)
			}
			for _, r := range w.Rules {
				if !slices.Equal(r.Operations, []admissionregistrationv1.OperationType{"CREATE", "UPDATE"}) {
					t.Errorf("%s: %s is asked about %v", rendering, w.Name, r.Operations)
				}
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

func TestEveryRouteIsAskedAbout(t *testing.T) {
	got := map[string][]string{}
	for _, w := range configuration(t, render(t), "pipeguard-webhook").Webhooks {
		for _, r := range w.Rules {
			for _, resource := range r.Resources {
				got[w.Name] = append(got[w.Name], r.APIGroups[0]+"/"+resource)
			}
		}
		if len(w.MatchConditions) != 1 || *w.ClientConfig.Service.Path != "/validate" {
			t.Errorf("%s: %d conditions, path %s", w.Name, len(w.MatchConditions), *w.ClientConfig.Service.Path)
		}
	}
	want := map[string][]string{
		"pods.pipeguard.dev":              {"/pods", "/pods/ephemeralcontainers"},
		"workloads.pipeguard.dev":         {"apps/deployments", "apps/daemonsets", "apps/statefulsets", "apps/replicasets", "batch/jobs", "/replicationcontrollers"},
		"cronjobs.pipeguard.dev":          {"batch/cronjobs"},
		"podtemplates.pipeguard.dev":      {"/podtemplates"},
		"persistentvolumes.pipeguard.dev": {"/persistentvolumes"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// plainPath is the part of the conditions that is a pair of regular expressions, as the API server would apply it.
// A path with more characters than longest is not plain.
type plainPath struct {
	longest      int
	form, judged *regexp.Regexp
}

var conditionPath = regexp.MustCompile(`path\.size\(\) <= (\d+) && path\.matches\(r'([^']+)'\) && !path\.contains\('\.\.'\) && !path\.matches\(r'([^']+)'\)`)

// plainPaths reads the expressions from the conditions, which must all have the same.
func plainPaths(t *testing.T, all []object) plainPath {
	t.Helper()
	var found []string
	for _, w := range configuration(t, all, "pipeguard-webhook").Webhooks {
		m := conditionPath.FindStringSubmatch(w.MatchConditions[0].Expression)
		if m == nil {
			t.Fatalf("%s has another condition:\n%s", w.Name, w.MatchConditions[0].Expression)
		}
		if found != nil && !slices.Equal(found, m[1:]) {
			t.Fatalf("%s has another idea of a plain path: %q, not %q", w.Name, m[1:], found)
		}
		found = m[1:]
	}
	longest, err := strconv.Atoi(found[0])
	if err != nil {
		t.Fatal(err)
	}
	return plainPath{longest, regexp.MustCompile(found[1]), regexp.MustCompile(found[2])}
}

func (p plainPath) match(path string) bool {
	return utf8.RuneCountInString(path) <= p.longest && p.form.MatchString(path) && !strings.Contains(path, "..") && !p.judged.MatchString(path)
}

// oddSubPath has the expression for subPaths that are not sent. One with more characters than longest is sent.
type oddSubPath struct {
	longest int
	form    *regexp.Regexp
}

var conditionSubPath = regexp.MustCompile(`has\(mount\.(\w+)\) && \(mount\.(\w+)\.size\(\) > (\d+) \|\| !mount\.(\w+)\.matches\(r'([^']+)'\)\)`)

// oddSubPaths reads the expression from the conditions, which must all have the same for subPath and subPathExpr.
func oddSubPaths(t *testing.T, all []object) (odd oddSubPath) {
	t.Helper()
	for _, w := range configuration(t, all, "pipeguard-webhook").Webhooks {
		var fields []string
		for _, m := range conditionSubPath.FindAllStringSubmatch(w.MatchConditions[0].Expression, -1) {
			if m[1] != m[2] || m[1] != m[4] {
				t.Errorf("%s: one field is there and another is looked at: %s", w.Name, m[0])
			}
			longest, err := strconv.Atoi(m[3])
			if err != nil || odd.form != nil && (odd.longest != longest || odd.form.String() != m[5]) {
				t.Errorf("%s has another idea of a subPath: %s, %v", w.Name, m[0], err)
			}
			fields, odd = append(fields, m[1]), oddSubPath{longest, regexp.MustCompile(m[5])}
		}
		if want := []string{"subPath", "subPathExpr"}; w.Name != "persistentvolumes.pipeguard.dev" && !slices.Equal(fields, want) {
			t.Errorf("%s looks at %v of a mount", w.Name, fields)
		}
	}
	return odd
}

func (o oddSubPath) match(subPath string) bool {
	return utf8.RuneCountInString(subPath) > o.longest || !o.form.MatchString(subPath)
}

var conditionMounts = regexp.MustCompile(`volumeMounts.*\.sum\(\) > (\d+) `)

var conditionItems = regexp.MustCompile(`items\.value\(\)\.size\(\) > (\d+)\)`)

// An expression whose evaluation costs more than 1,000,000 is given up by the API server, and with failurePolicy Ignore the
// object passes. A tenth of the path's length times a quarter of the expression's is what k8s.io/apiserver/pkg/cel/library
// and cel-go charge for matches(); 100 covers everything else about a volume.
func TestTheConditionsCostLessThanTheAPIServerSpends(t *testing.T) {
	for _, paths := range []int{0, 1, 10, 100, 1000} {
		list := make([]string, paths)
		for i := range list {
			list[i] = fmt.Sprintf(`"C:\\Program Files\\Some Product %d\\Secrets"`, i)
		}
		all := render(t, "--set-json", "parameters.equalPowerPaths=["+strings.Join(list, ",")+"]")
		plain := plainPaths(t, all)
		for _, w := range configuration(t, all, "pipeguard-webhook").Webhooks {
			m := conditionItems.FindStringSubmatch(w.MatchConditions[0].Expression)
			if m == nil {
				if w.Name != "persistentvolumes.pipeguard.dev" { // it has one path
					t.Errorf("%s does not test sizes", w.Name)
				}
				continue
			}
			most, err := strconv.Atoi(m[1])
			if err != nil {
				t.Fatal(err)
			}
			mounts, err := strconv.Atoi(conditionMounts.FindStringSubmatch(w.MatchConditions[0].Expression)[1])
			if err != nil {
				t.Fatal(err)
			}
			odd := oddSubPaths(t, all)
			if cost := mounts * (20 + (odd.longest/10+1)*(len(odd.form.String())/4+1)); cost > 350_000 {
				t.Errorf("%d paths: %s: %d mounts cost %d", paths, w.Name, mounts, cost)
			}
			path, quarter := plain.longest/10+1, func(e *regexp.Regexp) int { return len(e.String())/4 + 1 }
			if cost := most * (100 + path*(quarter(plain.form)+quarter(plain.judged)+1)); cost > 450_000 {
				t.Errorf("%d paths: %s: %d volumes cost %d", paths, w.Name, most, cost)
			}
			if paths <= 10 && most < 50 {
				t.Errorf("%d paths: real pods have more than %d volumes", paths, most)
			}
		}
	}
}

func TestWhatKeepsNodesRunningIsNotAskedAbout(t *testing.T) {
	plain := plainPaths(t, render(t))
	for _, path := range []string{
		"/run/xtables.lock", "/lib/modules", "/opt/cni/bin", "/etc/cni/net.d", "/var/run/calico", "/proc/sys/net", "/sys/fs/bpf", "/dev",
		"/var/lib/kubelet/pods", "/var/lib/kubelet/plugins_registry/", "/var/log", "/etc/ssl/certs", "/etc/pki", "/usr/share/ca-certificates",
		"/run/containerd/containerd.sock", "/home/kubernetes/bin", "/mnt/data@1", "/var/lib/x+y_z-1.2",
	} {
		if !plain.match(path) {
			t.Errorf("%s is asked about", path)
		}
	}
	for _, path := range []string{
		"", "/", "//", "/.", "/./windows", "/windows", "/WINDOWS/System32", "/etc", "/etc/", "/etc/kubernetes", "/etc./kubernetes", "/etc/./kubernetes",
		`\\.\pipe\csi-proxy-disk-v1`, `//./pipe/csi-proxy-disk-v1`, `/\.\pipe\x`, `C:\`, `c:/windows`, `C:`, `/c:/x`, "/device/namedpipe/x", "/Device/HarddiskVolume1",
		"/global/x", "/GLOBAL??/x", "/dosdevices/x", "/??/pipe/x", "/./device/namedpipe/x", "/././Device", "/./GLOBAL/x", "/ /device/x", "/. /device/x", "/./sessions/0", "relative", "npipe:////./pipe/x", "/WINDOW~1", "/a b", "/a\x00", "/a\n", "/ä", "/a/../b",
	} {
		if plain.match(path) {
			t.Errorf("%q is not asked about", path)
		}
	}
}

// FuzzNothingOfInterestIsOnAPlainPath holds the conditions to what the webhook would say of a mount. A subPath that could
// lead out of its volume, or has characters that few files have, is sent.
func FuzzNothingOfInterestIsOnAPlainPath(f *testing.F) {
	for _, path := range []string{"/var/lib/x", "/etc/kubernetes", "/windows/system32", "/device/x", "/k/secrets", "/K", "/Data.1/x", "/.", "/a/./b"} {
		for _, subPath := range []string{"", "a/b", "system32", "kubernetes", "secrets/x", "./a/.b", `. .\NamedPipe\x`, `.:.`, `C:\Windows`, `\\.\pipe\x`, `??\pipe\x`, "WINDOW~1"} {
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
	var plain plainPath
	var odd oddSubPath
	f.Fuzz(func(t *testing.T, path, subPath string) {
		if plain.form == nil {
			quotedPaths := strings.ReplaceAll(`["`+strings.Join(paths, `","`)+`"]`, `\`, `\\`)
			all := render(t, "--set-json", "parameters.equalPowerPaths="+quotedPaths)
			plain, odd = plainPaths(t, all), oddSubPaths(t, all)
		}
		if !plain.match(path) || odd.match(subPath) {
			return
		}
		if v := guard.JudgeMount(path, subPath); v.Match {
			t.Errorf("%+q with subPath %+q: %+v", path, subPath, v)
		}
		if v := guard.JudgeMountExpr(path, subPath+"$(X)"); v.Match {
			t.Errorf("%+q with subPathExpr %+q and a variable: %+v", path, subPath, v)
		}
		if v, p := guard.JudgeAnyMount(path), powers.JudgeAnyMount(path); v.Match || p != pipepath.PowerNone {
			t.Errorf("%+q in a PersistentVolume: %+v, power %q", path, v, p)
		}
		if p := powers.JudgeMountExpr(path, subPath+"$(X)"); p != pipepath.PowerNone {
			t.Errorf("%+q with subPathExpr %+q and a variable has the power %q", path, subPath, p)
		}
		if p := powers.JudgeMount(path, subPath); p != pipepath.PowerNone {
			t.Errorf("%+q with subPath %+q has the power %q", path, subPath, p)
		}
	})
}
