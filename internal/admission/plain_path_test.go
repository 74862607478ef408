package admission

import (
	"regexp"
	"strings"
	"testing"
)

// plainPath and the beginnings below are the match conditions of the webhook configuration: an object all of whose host
// paths are plain is never sent, so that what Linux nodes need does not depend on the webhook, unless a subPath is odd.
var plainPath = regexp.MustCompile(`^(/[A-Za-z0-9._+@-]*[A-Za-z0-9_+@-])+/?$`)

var plainSubPath = regexp.MustCompile(`^\.?([A-Za-z0-9_+@/$()-]+\.?)*$`)

func isPlainPath(path string) bool {
	lower := strings.ToLower(path)
	for _, beginning := range []string{"/device", "/windows", "/etc/kubernetes", "/program", "/users", "/global", "/dosdevices", "/sessions", "/silos"} {
		if strings.HasPrefix(lower, beginning) {
			return false
		}
	}
	return plainPath.MatchString(path) && !strings.Contains(path, "..") && lower != "/etc" && lower != "/etc/"
}

func FuzzWhatIsNeverSentHoldsNothingToDecide(f *testing.F) {
	for _, path := range append([]string{"/var/lib/kubelet", "/etc/cni/net.d", "/lib/modules", "/run/xtables.lock", "/etc/ssl/", "/x"}, paths...) {
		for _, subPath := range []string{"", "data", `Windows`, `C:\Windows`, `\\.\pipe\csi-proxy`, `??\pipe\csi-proxy`, "kubernetes", `PROGRA~1`, "a:b"} {
			f.Add(path, subPath)
		}
	}
	scope := testScope(f, overlapping())
	f.Fuzz(func(t *testing.T, path, subPath string) {
		if !isPlainPath(path) || !plainSubPath.MatchString(subPath) {
			return
		}
		obj := object{rules: &judgedKinds[0], pod: podSpec{
			hostPaths:  []hostPathVolume{{name: "v", path: path}, {name: "w", path: path}},
			containers: []container{{mounts: []volumeMount{{volume: "v", subPath: subPath}}}},
		}}
		if e, err := extract(scope, &obj, plenty()); err != nil || isRelevant(&e, &metadata{}) {
			t.Errorf("%q with %q: %+v %+v, %v", path, subPath, e.mounts, e.unmounted, err)
		}
		obj = object{rules: &judgedKinds[len(judgedKinds)-1], volume: persistentVolume{sources: []volumeSource{{"local", path}}}}
		if e, err := extract(scope, &obj, plenty()); err != nil || isRelevant(&e, &metadata{}) {
			t.Errorf("%q in a volume: %+v, %v", path, e.persistent, err)
		}
	})
}

func TestPathsThatOnlyLookPlainAreSent(t *testing.T) {
	for _, path := range []string{"/", "/.", "/./windows", "/etc", "/ETC/", "/etc./kubernetes", "/a/../windows", "/Windows", "//./pipe/x", "/device/namedpipe/x", "C:/x", "/x y", "/windows.", "/Device", "/??/pipe"} {
		if isPlainPath(path) {
			t.Errorf("%s counts as plain", path)
		}
	}
}
