// Package pipeguard_test holds the rules that every package of the module keeps.
package pipeguard_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/pipeguard/pipeguard"

// listed is what the go command says of a package.
type listed struct {
	ImportPath                     string
	Dir                            string
	Standard                       bool
	GoFiles, CgoFiles, TestGoFiles []string
	IgnoredGoFiles                 []string
	Deps                           []string
}

// list asks the go command, once, for the module's packages and all that they depend on, for one system.
func list(t *testing.T, goos string) map[string]listed {
	t.Helper()
	if known := lists[goos]; known != nil {
		return known
	}
	cmd := exec.Command("go", "list", "-e", "-deps", "-json=ImportPath,Dir,Standard,GoFiles,CgoFiles,TestGoFiles,IgnoredGoFiles,Deps", "./...")
	cmd.Env = append(cmd.Environ(), "GOOS="+goos, "GOARCH=amd64", "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list for %s: %v\n%s", goos, err, stderr.String())
	}
	packages := map[string]listed{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("go list for %s: %v", goos, err)
		}
		packages[p.ImportPath] = p
	}
	if len(packages) < 50 {
		t.Fatalf("go list for %s named only %d packages: the rules below would hold of nothing", goos, len(packages))
	}
	lists[goos] = packages
	return packages
}

var lists = map[string]map[string]listed{} // by system

// matches says whether an import path is the pattern itself or lies below it.
func matches(path, pattern string) bool {
	return path == pattern || strings.HasPrefix(path, pattern+"/")
}

// forbidden lists who may not depend on whom, directly or through others.
// Paths without a dot are the module's own.
var forbidden = []struct{ from, to, because string }{
	{"internal/patience", "*", "reading in time does not depend on what is read"},
	{"internal/atmost", "*", "a bound does not depend on what is read"},
	{"internal/atomicfile", "*", "a file is replaced in the same way whatever it holds"},
	{"internal/proxy/acl", "*", "matching a caller is a pure function"},
	{"internal/policy", "k8s.io", "the engine also judges requests on nodes, which know no Kubernetes types"},
	{"internal/policy", "google.golang.org/grpc", "the engine also judges admission, which knows no gRPC"},
	{"internal/policy", "internal/proxy", "the engine knows neither of its callers"},
	{"internal/policy", "internal/admission", "the engine knows neither of its callers"},
	{"internal/audit", "internal/proxy", "records describe callers; they do not know how callers are found"},
	{"internal/audit", "internal/admission", "records describe decisions; they do not know how decisions are made"},
	{"internal/audit", "k8s.io", "the log is read on machines that know no Kubernetes types"},
	{"internal/admission", "internal/proxy", "the two enforcement points share policy and audit, not code"},
	{"internal/admission", "google.golang.org/grpc", "admission speaks HTTP"},
	{"internal/proxy/apiserver", "internal/proxy/handler", "conversion comes before, and knows nothing of, what is carried out"},
	{"internal/proxy/apiserver", "internal/policy", "conversion decides nothing"},
	{"internal/proxy/apiserver", "internal/audit", "conversion records nothing"},
	{"internal/proxy/handler", "internal/policy", "operations are carried out after the decision"},
	{"internal/proxy/handler", "internal/audit", "operations are carried out between the two records"},
	{"internal/proxy/handler", "internal/proxy/winhost", "handlers name the interfaces; hosts implement them"},
	{"internal/proxy/handler", "internal/proxy/fakehost", "handlers name the interfaces; hosts implement them"},
	{"internal/proxy/winhost", "internal/policy", "a host does what it is told after the decision"},
	{"internal/proxy/winhost", "internal/audit", "a host does what it is told between the two records"},
	{"internal/proxy/fakehost", "internal/policy", "a host does what it is told after the decision"},
	{"internal/proxy/fakehost", "internal/audit", "a host does what it is told between the two records"},
	{"internal/proxy/winhost", "internal/proxy/peer", "a host does not ask who wants it"},
	{"internal/proxy/wmi", "internal", "WMI is asked by anybody, and knows nobody"},
	{"internal/proxy/order", "internal/proxy/handler", "an object is its name here, whatever is done to it"},
	{"internal/proxy/order", "google.golang.org/grpc", "a queue speaks no protocol"},
	{"internal/proxy/forward", "internal/proxy/winhost", "what is forwarded is not carried out here"},
	{"internal/proxy/forward", "internal/proxy/fakehost", "what is forwarded is not carried out here"},
	{"internal/proxy/raw", "internal", "bytes that pass unread are of nobody's kind"},
	{"internal/proxy/forward", "internal/policy", "calls are passed on after the decision"},
	{"internal/proxy/forward", "internal/audit", "calls are passed on between the two records"},
	{"internal/proxy/peer", "internal/proxy/acl", "who calls is established before anyone asks what they may do"},
	{"internal/proxy/peer", "internal/policy", "who calls is established before anyone asks what they may do"},
	{"internal/proxy/cri", "internal/policy", "the container runtime names containers, and decides nothing"},
	{"internal/proxy/cri", "internal/proxy/acl", "the container runtime names containers, and decides nothing"},
	{"internal/proxy/kubelet", "internal/policy", "the kubelet tells accounts, and decides nothing"},
	{"internal/proxy/token", "internal/proxy", "a token is verified, whatever it is wanted for"},
	{"internal/proxy/token", "internal/policy", "a token is verified, whatever it is wanted for"},
	{"internal/proxy/token", "internal/audit", "a token is verified, whatever it is wanted for"},
	{"internal/proxy/token", "internal/config", "a token is verified, whatever it is wanted for"},
	{"internal/proxy/token", "k8s.io", "nodes know no Kubernetes types"},
	{"client/token", "internal", "drivers import it: it drags nothing of the proxy along"},
	{"client/token", "k8s.io", "drivers import it: it drags nothing of Kubernetes along"},
	{"internal/proxy/requestpolicy", "internal/proxy/handler", "calls are judged before they are carried out"},
	{"internal/proxy/requestpolicy", "internal/proxy/winhost", "calls are judged before they are carried out"},
	{"internal/proxy/requestpolicy", "internal/proxy/fakehost", "calls are judged before they are carried out"},
	{"internal/proxy/requestpolicy", "internal/proxy/forward", "calls are judged before they are passed on"},
	{"internal/nodepolicy", "internal/proxy", "policies for nodes are made and tried where no node is"},
	{"internal/nodepolicy", "k8s.io", "nodes know no Kubernetes types"},
	{"internal/bundle", "k8s.io", "bundles are read on nodes, which know no Kubernetes types"},
	{"internal/bundle", "internal/proxy", "a bundle is carried and verified, whatever it says"},
	{"api/v1alpha1", "internal", "types hold no logic"},
	{"api/v1alpha1", "sigs.k8s.io/controller-runtime", "types are read by programs that reach no cluster"},
	{"internal/admission", "api", "policy objects are put into the words of admission elsewhere"},
	{"internal/admission", "internal/controller", "a review waits for no cluster"},
	{"internal/policy", "api", "the engine knows Rego and data, wherever they come from"},
	{"internal/policyset", "internal/proxy", "policies are put into the words of nodes where no node is"},
	{"internal/policyset", "internal/controller", "policies are put together in the same way at the author's desk"},
	{"internal/served", "internal", "what nodes report is summed up in the same way at the author's desk"},
	{"internal/certs", "internal/admission", "certificates know nothing of what is served with them"},
	{"internal/certs", "internal/controller", "certificates do not depend on policies"},
	{"internal/controller", "internal/certs", "policies do not depend on certificates"},
	{"internal/controller", "internal/proxy", "the cluster's side serves no node API"},
	{"cmd/pipeguard", "internal/controller", "the author's desk needs no cluster"},
	{"cmd/pipeguard", "sigs.k8s.io/controller-runtime", "a command asks a cluster a few questions, and keeps no cache of it"},
	{"cmd/pipeguard/internal/reviewcmd", "k8s.io/client-go", "objects are judged in the same way wherever the policies come from"},
	{"cmd/pipeguard/internal/policycmd", "k8s.io/client-go", "the author's desk needs no cluster"},
	{"cmd/pipeguard/internal/aclcmd", "k8s.io/client-go", "the author's desk needs no cluster"},
	{"cmd/pipeguard/internal/bundlecmd", "k8s.io/client-go", "the author's desk needs no cluster"},
	{"cmd/pipeguard/internal/keyscmd", "k8s.io/client-go", "the author's desk needs no cluster"},
	{"cmd/pipeguard/internal/auditcmd", "k8s.io/client-go", "logs are read where no cluster is"},
	{"cmd/proxy", "k8s.io/client-go", "what a node says to the cluster is a dozen fields, and needs no client that could do more"},
	{"cmd/proxy", "sigs.k8s.io/controller-runtime", "what a node says to the cluster is a dozen fields, and needs no client that could do more"},
	{"internal/proxy/report", "k8s.io", "what a node says to the cluster is a dozen fields, and needs no client that could do more"},
	{"cmd/proxy", "internal/admission", "the node's enforcement does not parse Kubernetes objects"},
	{"cmd/webhook", "github.com/Microsoft/go-winio", "the webhook opens no pipes"},
	{"cmd/webhook", "internal/proxy", "the webhook serves no node API"},
	{"cmd/webhook", "test/memnet", "connections in memory are for tests"},
	{"cmd/proxy", "test/memnet", "connections in memory are for tests"},
	{"cmd/pipeguard", "test/memnet", "connections in memory are for tests"},
}

// mayUse lists packages that may depend, beside the standard library, on these alone.
var mayUse = []struct {
	from    string
	to      []string
	because string
}{
	{"internal/httpsclient", []string{"internal/atmost", "internal/filetrust", "golang.org/x/sys"}, "what asks a server knows nothing of the question"},
	{"internal/proxy/report", []string{"internal/httpsclient", "internal/atmost", "internal/filetrust", "golang.org/x/sys"}, "a report is what the service answers, and decides nothing"},
}

// forbiddenDirect lists what a package may not import in its own files, although something it imports may.
var forbiddenDirect = []struct{ from, to, because string }{
	{"internal/proxy", "internal/proxy/handler", "the chain guards any handler it is given"},
	{"internal/proxy", "internal/proxy/winhost", "the chain guards any host"},
	{"internal/proxy", "internal/proxy/forward", "the chain guards any server behind it"},
	{"internal/proxy", "internal/proxy/fakehost", "the chain guards any host"},
	{"internal/proxy", "k8s.io", "the node's enforcement does not parse Kubernetes objects"},
	{"internal/proxy", "internal/bundle", "the chain is told which rules decide, wherever they come from"},
}

func TestDependenciesPointOneWay(t *testing.T) {
	for _, goos := range []string{"linux", "windows"} {
		packages := list(t, goos)
		for _, rule := range forbidden {
			checkRule(t, goos, packages, rule.from, rule.to, rule.because)
		}
		for _, rule := range mayUse {
			for _, dep := range dependencies(t, packages, rule.from) {
				isAllowed := func(to string) bool { return matches(dep, to) || matches(dep, module+"/"+to) }
				if !packages[dep].Standard && !slices.ContainsFunc(rule.to, isAllowed) {
					t.Errorf("%s: %s depends on %s, but may use only %q: %s", goos, rule.from, dep, rule.to, rule.because)
				}
			}
		}
		for _, rule := range forbiddenDirect {
			checkDirect(t, packages, rule.from, rule.to, rule.because)
		}
	}
}

// The core is what must be read to believe that no call runs that is not permitted: pure functions that are the same on every system.
func TestTheCoreDependsOnNothing(t *testing.T) {
	for _, goos := range []string{"linux", "windows"} {
		packages, found := list(t, goos), 0
		for path := range packages {
			if from, ok := strings.CutPrefix(path, module+"/"); ok && matches(from, "internal/core") {
				found++
				checkRule(t, goos, packages, from, "*", "the core is read in one sitting")
			}
		}
		if found < 3 {
			t.Errorf("%s: only %d packages of the core", goos, found)
		}
	}
}

// dependencies are the paths of what a package depends on, directly or through others.
func dependencies(t *testing.T, packages map[string]listed, from string) []string {
	t.Helper()
	p, ok := packages[module+"/"+from]
	if !ok {
		t.Errorf("rule about %s: there is no such package", from)
	}
	return p.Deps
}

func checkRule(t *testing.T, goos string, packages map[string]listed, from, to, because string) {
	t.Helper()
	for _, dep := range dependencies(t, packages, from) {
		switch {
		case to == "*":
			if d := packages[dep]; !d.Standard && !matches(dep, module+"/internal/core") {
				t.Errorf("%s: %s depends on %s, but may use only the standard library and the core: %s", goos, from, dep, because)
			}
		case strings.Contains(strings.SplitN(to, "/", 2)[0], ".") && matches(dep, to), matches(dep, module+"/"+to):
			t.Errorf("%s: %s depends on %s: %s", goos, from, dep, because)
		}
	}
}

func checkDirect(t *testing.T, packages map[string]listed, from, to, because string) {
	t.Helper()
	p, ok := packages[module+"/"+from]
	if !ok {
		t.Errorf("rule about %s: there is no such package", from)
	}
	for _, file := range p.GoFiles {
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, file), nil, parser.ImportsOnly)
		if err != nil {
			t.Fatalf("parse imports: %v", err)
		}
		for _, spec := range parsed.Imports {
			path := strings.Trim(spec.Path.Value, `"`)
			if matches(path, to) || matches(path, module+"/"+to) {
				t.Errorf("%s imports %s: %s", filepath.Join(p.ImportPath, file), path, because)
			}
		}
	}
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	for _, goos := range []string{"linux", "windows"} {
		for path, p := range list(t, goos) {
			if !matches(path, module) || len(p.GoFiles) == 0 {
				continue
			}
			var documented []string
			for _, file := range p.GoFiles {
				parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, file), nil, parser.ParseComments|parser.PackageClauseOnly)
				if err != nil {
					t.Fatalf("parse package clause: %v", err)
				}
				if parsed.Doc != nil {
					documented = append(documented, file)
				}
			}
			if len(documented) != 1 {
				t.Errorf("%s: one file should say what the package is, found %q", path, documented)
			}
		}
	}
}

// windowsFiles are the packages that may hold files for Windows alone: where the system is touched.
var windowsFiles = []string{
	"cmd/proxy",
	"internal/audit/segment",
	"internal/filetrust",
	"internal/logfile",
	"internal/proxy/peer",
	"internal/proxy/pipe",
	"internal/proxy/watch",
	"internal/proxy/winhost",
	"internal/proxy/wmi",
	"internal/winsvc",
	"test/windows",
}

func TestOnlyTheEdgesHoldWindowsFiles(t *testing.T) {
	for path, p := range list(t, "windows") {
		if !matches(path, module) || slices.Contains(windowsFiles, strings.TrimPrefix(path, module+"/")) {
			continue
		}
		for _, file := range p.GoFiles {
			if strings.HasSuffix(file, "_windows.go") {
				t.Errorf("%s holds %s: only %q touch Windows", path, file, windowsFiles)
			}
		}
	}
}

func TestTheProxyOfNodesHasNoInventedMachine(t *testing.T) {
	for goos, want := range map[string]bool{"windows": false, "linux": true} {
		if has := slices.Contains(list(t, goos)[module+"/cmd/proxy"].Deps, module+"/internal/proxy/fakehost"); has != want {
			t.Errorf("%s: the proxy depends on fakehost: %t", goos, has)
		}
	}
}
