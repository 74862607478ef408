//go:build linux

package winhost

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"

	diskapi "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	fsapi "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"
	smbapi "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"
	volapi "github.com/kubernetes-csi/csi-proxy/client/api/volume/v2alpha1"

	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/internal/proxy/handler"
)

// reportsFile has the table of reports as its readers see it.
var reportsFile = filepath.Join("..", "..", "..", "docs", "csi-proxy-reports.md")

// report is a fault that was reported of csi-proxy or of a driver that uses it, and what happens here instead.
type report struct {
	id       string // "#66" of kubernetes-csi/csi-proxy, or a CVE
	reported string
	here     string
	drive    func(t *testing.T)
}

func (r report) row() string { return fmt.Sprintf("| %s | %s | %s |", r.id, r.reported, r.here) }

var reports = []report{
	{"#66", "after the password of a share has changed, its mapping stays with the old one and nothing can be mounted",
		"a mapping whose credentials the server rejects is made anew with those of the request", drive66},
	{"#98", "containerd cannot resolve a link to a share, since Go resolves none without a separator at its end",
		"links to shares end with a separator", drive98},
	{"#115", "a driver does not find the pipe of the version that it asks for",
		"the pipes of all 23 group-versions are served, or the start fails", drive115},
	{"#145", "the reserved partition of a GPT disk counts as a partition, and the disk gets none for data",
		"reserved partitions are left out, and the disk gets its partition", drive145},
	{"#189", "the volume of a path below a link or a mount point cannot be found",
		"`GetClosestVolumeIDFromTargetPath` finds it through links and mount points that stay within the working directories", drive189},
	{"#206", "`DOMAIN\\user` does not reach Windows as it was sent, and the error does not say why",
		"separators in user names are escaped as the provider reads them; errors have the code of Windows and what it means", drive206},
	{"#311", "`Network access is denied` (error 65) for a server that cannot encrypt",
		"PermissionDenied with code 65 and the flag that turns encryption off, `-require-privacy=false`", drive311},
	{"#360", "each call starts a PowerShell, which takes seconds and most of a processor",
		"no process is started: Windows is asked through WMI and its functions", drive360},
	{"#364", "a volume that has nearly its largest size cannot be resized, and so not mounted",
		"less than 100 MiB more is success, and nothing is done", drive364},
	{"#393", "`IsSymlink` is false for a volume that is mounted on a directory",
		"mount points count as links; their reparse point is read, not Go's file mode", drive393},
	{"#411", "a driver that imports the client panics when it starts, because a package asks WMI as it is loaded",
		"no package that a driver can import asks WMI, and none of the proxy does as it is loaded", drive411},
	{"CVE-2023-3893", "ids and paths in requests are run as PowerShell",
		"ids and paths have a strict form and are refused before the host is asked; nothing is ever run", drive3893},
	{"CVE-2026-3864", "a `subDir` with `..` makes csi-driver-nfs delete outside of its share",
		"NFS does not pass through the proxy; paths of the node with `..` are refused, whatever driver sends them", drive3864},
	{"CVE-2026-3865", "a `subDir` with `..` makes csi-driver-smb delete outside of its share",
		"remote paths with `..` are refused before anything is mapped; what a controller deletes on the server itself does not pass through the proxy", drive3865},
}

func TestReportedFaultsOfCSIProxyAndWhatHappensHere(t *testing.T) {
	for _, r := range reports {
		t.Run(r.id, r.drive)
	}
}

func TestTheDocumentOfReportsHasTheRowsThatAreTested(t *testing.T) {
	text, err := os.ReadFile(reportsFile)
	if err != nil {
		t.Fatal(err)
	}
	var documented, tested []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "| #") || strings.HasPrefix(line, "| CVE-") {
			documented = append(documented, line)
		}
	}
	for _, r := range reports {
		tested = append(tested, r.row())
	}
	if diff := cmp.Diff(tested, documented); diff != "" {
		t.Errorf("%s (-tested +documented):\n%s", reportsFile, diff)
	}
}

// node is the handlers over a host that is answered by hand.
type node struct {
	*ground
	wmi      *fakeWMI
	handlers *handler.Handlers
}

func newNode(t *testing.T, answers network) node {
	t.Helper()
	_, f, g := newShares(t)
	host, err := newHost(Options{Roots: g.roots, WMI: f, RequirePrivacy: true}, system{open: g.open, mounts: fakeMounts{g}, network: answers, memory: forgetful{}})
	if err != nil {
		t.Fatal(err)
	}
	handlers, err := handler.New(host.Hosts(), g.roots)
	if err != nil {
		t.Fatal(err)
	}
	return node{g, f, handlers}
}

// call carries out an operation; its name is the request's without "Request".
func (n node) call(group string, request protoadapt.MessageV1) (proto.Message, error) {
	m := protoadapt.MessageV2Of(request)
	name := strings.TrimSuffix(string(m.ProtoReflect().Descriptor().Name()), "Request")
	return n.handlers.Handle(context.Background(), &apiserver.Call{Operation: &apiserver.Operation{Group: group, Name: name}, Request: m})
}

// refuses asks for a request that must be refused without the host being asked or touched.
func (n node) refuses(group string, request protoadapt.MessageV1) {
	n.t.Helper()
	before := list(n.t, n.base)
	if _, err := n.call(group, request); status.Code(err) != grpccodes.InvalidArgument {
		n.t.Errorf("%T %v: %v", request, request, err)
	}
	unchangedDisk(n.t, n.ground, before)
	n.wmi.wantCalls()
}

func drive66(t *testing.T) {
	answers := fakeNetwork{}
	n := newNode(t, answers)
	mount := func(password string) error {
		_, err := n.call("smb", &smbapi.NewSmbGlobalMappingRequest{RemotePath: `\\server\share`, Username: `EXAMPLE\user`, Password: password})
		return err
	}
	if err := mount("old-password"); err != nil {
		t.Fatal(err)
	}
	answers[`\\server\share`] = failedAs("GetFileAttributesW", `\\server\share`, 1326)
	if err := mount("new-password"); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{created, removed + " mapping", created}, methods(n.wmi)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func drive98(t *testing.T) {
	s, _, g := newShares(t)
	if err := s.NewSMBGlobalMapping(t.Context(), mapping(t, g, `\\server\share`, `C:\work\link`, "user", "pw")); err != nil {
		t.Fatal(err)
	}
	if text := g.at(`C:\work\link`); text != `\\server\share\` {
		t.Errorf("the link leads to %s", text)
	}
}

func drive115(t *testing.T) {
	apis, err := apiserver.Load(apiserver.Groups()...)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, api := range apis {
		names = append(names, api.GroupVersion().String())
	}
	if len(names) != 23 || !slices.Contains(names, "filesystem-v1beta1") || !slices.Contains(names, "smb-v1beta1") {
		t.Errorf("served: %v", names)
	}
}

func drive145(t *testing.T) {
	d, f := newDisks(t)
	f.set("disk2", "PartitionStyle", uint64(styleGPT))
	f.classes["MSFT_Partition"] = append(f.classes["MSFT_Partition"], row("reserved", properties{"DiskNumber": uint64(2), "PartitionNumber": uint64(1), "GptType": gptReserved}))
	n, err := handler.New(handler.Hosts{Disk: d}, newGround(t).roots)
	if err != nil {
		t.Fatal(err)
	}
	call := &apiserver.Call{Operation: &apiserver.Operation{Group: "disk", Name: "PartitionDisk"}, Request: protoadapt.MessageV2Of(&diskapi.PartitionDiskRequest{DiskNumber: 2})}
	if _, err := n.Handle(t.Context(), call); err != nil {
		t.Error(err)
	}
	f.wantCalls(partitioned, "MSFT_Disk.Refresh disk2", "MSFT_Partition.Online data2")
}

func drive189(t *testing.T) {
	v, _, g := planted(t)
	n, err := handler.New(handler.Hosts{Volume: v}, g.roots)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]handler.VolumeID{`C:\work\pod2`: volumeA, `C:\work\pod\mount-b`: volumeB, `C:\work\plugins`: volumeC, `C:\work\out\x`: ""} {
		call := &apiserver.Call{Operation: &apiserver.Operation{Group: "volume", Name: "GetClosestVolumeIDFromTargetPath"},
			Request: protoadapt.MessageV2Of(&volapi.GetClosestVolumeIDFromTargetPathRequest{TargetPath: path})}
		response, err := n.Handle(t.Context(), call)
		if want == "" {
			if status.Code(err) != grpccodes.InvalidArgument {
				t.Errorf("%s: %v", path, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if got := protoadapt.MessageV1Of(response).(*volapi.GetClosestVolumeIDFromTargetPathResponse).GetVolumeId(); got != string(want) {
			t.Errorf("%s: got %s", path, got)
		}
	}
}

func drive206(t *testing.T) {
	n := newNode(t, fakeNetwork{})
	request := &smbapi.NewSmbGlobalMappingRequest{RemotePath: `\\fs-1.example\share\`, Username: `DOMAIN\USER`, Password: "MYPASSWORD"}
	if _, err := n.call("smb", request); err != nil {
		t.Error(err)
	}
	n.wmi.wantCalls(created + ` [Credential:secret(DOMAIN\\USER:MYPASSWORD) RemotePath:\\fs-1.example\share RequirePrivacy:true]`)
	n = newNode(t, fakeNetwork{})
	n.wmi.says(created, 87)
	if _, err := n.call("smb", request); status.Code(err) != grpccodes.InvalidArgument || !strings.Contains(err.Error(), "code=87: the parameter is incorrect") {
		t.Error(err)
	}
}

func drive311(t *testing.T) {
	n := newNode(t, fakeNetwork{})
	n.wmi.says(created, 65)
	_, err := n.call("smb", &smbapi.NewSmbGlobalMappingRequest{RemotePath: `//10.93.111.12/share/pvc-1`, Username: `AZURE\u`, Password: "a-password"})
	if status.Code(err) != grpccodes.PermissionDenied || !strings.Contains(err.Error(), "code=65") || !strings.Contains(err.Error(), "-require-privacy=false") {
		t.Error(err)
	}
	s, f, g := newShares(t)
	s.requirePrivacy = false
	wants(t, s.NewSMBGlobalMapping(t.Context(), mapping(t, g, `\\server\share`, "", "user", "a-password")), nil)
	if !strings.Contains(f.calls[0], "RequirePrivacy:false") {
		t.Error(f.calls[0])
	}
}

// sources are the parsed files of packages, without their tests.
func sources(t *testing.T, directories ...string) map[string]*ast.File {
	t.Helper()
	files := map[string]*ast.File{}
	for _, directory := range directories {
		paths, err := filepath.Glob(filepath.Join(directory, "*.go"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %d files, %v", directory, len(paths), err)
		}
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files[path] = file
		}
	}
	return files
}

func drive360(t *testing.T) {
	for path, file := range sources(t, ".", "../wmi", "../handler") {
		for _, i := range file.Imports {
			if i.Path.Value == `"os/exec"` || strings.HasSuffix(i.Path.Value, `/exec"`) {
				t.Errorf("%s imports %s", path, i.Path.Value)
			}
		}
		for _, name := range []string{"StartProcess", "CreateProcess", "ShellExecute"} {
			ast.Inspect(file, func(n ast.Node) bool {
				if call, ok := n.(*ast.SelectorExpr); ok && strings.HasPrefix(call.Sel.Name, name) {
					t.Errorf("%s uses %s", path, call.Sel.Name)
				}
				return true
			})
		}
	}
}

func drive364(t *testing.T) {
	v, f := newVolumes(t)
	n, err := handler.New(handler.Hosts{Volume: v}, newGround(t).roots)
	if err != nil {
		t.Fatal(err)
	}
	// The partition has 10 GiB, and the disk room for 48,704 bytes more, as reported.
	call := &apiserver.Call{Operation: &apiserver.Operation{Group: "volume", Name: "ResizeVolume"},
		Request: protoadapt.MessageV2Of(&volapi.ResizeVolumeRequest{VolumeId: string(volumeB), SizeBytes: 10*gib + 48704})}
	if _, err := n.Handle(t.Context(), call); err != nil {
		t.Error(err)
	}
	f.wantCalls()
}

func drive393(t *testing.T) {
	n := newNode(t, fakeNetwork{})
	n.mkdir("volumes/00000000-0000-0000-0000-00000000000a")
	n.link("C/work/mount-v", string(volumeA))
	n.mkdir("C/work/plain")
	for path, want := range map[string]bool{`C:\work\mount-v`: true, `C:\work\plain`: false} {
		response, err := n.call("filesystem", &fsapi.IsSymlinkRequest{Path: path})
		if err != nil {
			t.Error(err)
			continue
		}
		if got := protoadapt.MessageV1Of(response).(*fsapi.IsSymlinkResponse).GetIsSymlink(); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}

func drive411(t *testing.T) {
	for path, file := range sources(t, ".", "../wmi", "../../../client/token") {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s does something as it is loaded", path)
			}
		}
		isClient := strings.Contains(path, "client")
		for _, i := range file.Imports {
			if strings.Contains(i.Path.Value, "microsoft/wmi") || isClient && (strings.Contains(i.Path.Value, "go-ole") || strings.Contains(i.Path.Value, "/wmi")) {
				t.Errorf("%s imports %s", path, i.Path.Value)
			}
		}
	}
}

func drive3893(t *testing.T) {
	n := newNode(t, fakeNetwork{})
	for _, text := range []string{`$(New-Item C:\owned)`, `x; Remove-Item C:\ -Recurse`, "`calc`", `\\?\Volume{$(calc)}\`, `' OR '1'='1`, "a\nb"} {
		n.refuses("volume", &volapi.FormatVolumeRequest{VolumeId: text})
		n.refuses("volume", &volapi.UnmountVolumeRequest{VolumeId: string(volumeA), TargetPath: `C:\work\` + text + `|x`})
		n.refuses("filesystem", &fsapi.MkdirRequest{Path: `C:\work\x"` + text})
		n.refuses("smb", &smbapi.NewSmbGlobalMappingRequest{RemotePath: `\\server\share\` + text + `"`, Username: "user", Password: "a-password"})
	}
}

func drive3864(t *testing.T) {
	n := newNode(t, fakeNetwork{})
	n.write("C/outside/kept")
	for _, path := range []string{`C:\work\sub\..\..\outside`, `C:\work\..\outside`, `C:\work\sub/../../outside`} {
		n.refuses("filesystem", &fsapi.RmdirRequest{Path: path, Force: true})
		n.refuses("filesystem", &fsapi.MkdirRequest{Path: path + `\x`})
		n.refuses("filesystem", &fsapi.CreateSymlinkRequest{SourcePath: path, TargetPath: `C:\work\link`})
	}
	if _, err := os.Lstat(n.base + "/C/outside/kept"); errors.Is(err, fs.ErrNotExist) {
		t.Error("it is gone")
	}
}

func drive3865(t *testing.T) {
	n := newNode(t, fakeNetwork{})
	for _, sub := range []string{`..`, `../other`, `a/../../other`, `a\..\b`, `.`, `a/./b`, `...`} {
		n.refuses("smb", &smbapi.NewSmbGlobalMappingRequest{RemotePath: `//server/share/` + sub, LocalPath: `C:\work\link`, Username: "user", Password: "a-password"})
		n.refuses("smb", &smbapi.RemoveSmbGlobalMappingRequest{RemotePath: `//server/share/` + sub})
	}
}
