package pipepath

import (
	"strings"
	"testing"
)

func defaultPowers(t testing.TB) *Powers {
	t.Helper()
	p, err := NewPowers(DefaultPowerPipes(), DefaultPowerPaths())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestJudgeMountSeesThePowerBehindEverySpelling lists routes to what commands a node.
func TestJudgeMountSeesThePowerBehindEverySpelling(t *testing.T) {
	tests := []struct {
		name  string
		want  Power
		paths []string
	}{
		{"the root of the system drive", PowerDirectory, []string{
			`C:\`, `c:/`, `C:`, `c:\\`, `C:\.`, `C:\ `, `C:\./.\`, `C:\x\..`, `C:\x\..\`, `C:\..`, `C:\x\y\..\..\..`, `/`, `\`, `\.`, `/.`, `/x\..`,
			`C:\::$INDEX_ALLOCATION`, `/C:/`, `\c:`, `.`, `.\`, `C:.`,
		}},
		{"the directory of Windows", PowerDirectory, []string{
			`C:\Windows`, `C:\WINDOWS\`, `c:/windows/./system32`, `C:\\Windows\\System32`, `C:/x/..\Windows`, `C:\x\..\Windows`, `C:\..\Windows`,
			`C:\Windows.`, `C:\Windows . .\System32`, `C:\ \Windows`, `C:\Windows::$INDEX_ALLOCATION`, `C:\Windows:$I30:$INDEX_ALLOCATION\System32`,
			`C:\Windows:x`, `/windows`, `\Windows\System32\config\SAM`, `/C:/Windows`, `\\?\C:\Windows`, `//?/c:/windows/system32`, `\??\C:\Windows`,
			`\\.\C:\Windows`, `\\?\GLOBALROOT\??\C:\Windows`, `\\?\Global\C:\Windows\x`, `C::$DATA\Windows`, "C:\\W\u0131ndow\u017f", "C:\\WINDOW\u017f\\system32",
			`uvm://C:\Windows`, `/./C:/Windows`, `.\C:\Windows`, `\ \. \c:\windows`, `./././c:/windows`, `C:\Windows\..\Windows\Temp`, `C:\Windows\x\..`, `//windows/system32`, `//./windows/system32`, `uvm://Windows/System32`,
		}},
		{"short names, which may be any", PowerDirectory, []string{
			`C:\WINDOW~1`, `C:\WI1234~2\System32`, `/window~1`, `C:\x\..\WINDOW~1.`, `C:\ETC~1\KUBERN~1`, `C:\etc\KUBERN~1\manifests`, `C:\PROGRA~1`,
		}},
		{"credentials and static pods", PowerDirectory, []string{
			`C:\etc\kubernetes`, `c:/etc/kubernetes/manifests`, `/etc/kubernetes`, `//etc/kubernetes`, `C:\etc\kubernetes\kubelet.conf`, `C:\etc\.\kubernetes`,
		}},
		{"a directory above a listed one", PowerDirectory, []string{`C:\etc`, `/etc`, `/etc/`, `C:/ETC/.`, `C:\etc\x\..`}},
		{"relative paths, taken from where services start", PowerDirectory, []string{
			`Windows`, `drivers`, `config\SAM`, `C:drivers`, `c:..`, `..\..\Windows`, `..`, `x\..\..\y`, `..\kubernetes`, `C:..\kubernetes`, `etc\kubernetes`, `1:\x`, `é:x`,
		}},
		{"segments that are a name to one layer and dot-dot to the next", PowerDirectory, []string{
			`C:\x\...\Windows`, `C:\x\.. \Windows`, `C:\x\..:\Windows`, `C:\x\..::$INDEX_ALLOCATION\Windows`, `C:\data\ ..`, `/data/....`, `C:\x\ . .\Windows`,
		}},
		{"characters that no path has", PowerDirectory, []string{"C:\\Windows\x00.txt", "C:\\x\n", "C:\\\u202ex", "C:\\\xff", "/data\x00"}},
		{"disks", PowerDisk, []string{
			`\\.\PhysicalDrive0`, `\\.\PHYSICALDRIVE12`, `//./physicaldrive1`, `\\?\PhysicalDrive0`, `\\.\PhysicalDrive0\x`, `\??\PhysicalDrive0`, `npipe://./PhysicalDrive0`,
			`\\.\Harddisk0Partition1`, `\\?\GLOBALROOT\Device\Harddisk0\Partition1`, `\\?\GLOBALROOT\Device\Harddisk0\DR0`, `\Device\Harddisk0\Partition1`,
			`\\?\scsi#disk&ven_msft&prod_virtual_disk#5&1&0#{53f56307-b6bf-11d0-94f2-00a0c91efb8b}`, `\\?\storage#volume#{1}#{53f5630d-b6bf-11d0-94f2-00a0c91efb8b}`,
			`\\.\GLOBALROOT\Device\PhysicalMemory`, `/dosdevices/PhysicalDrive0`, `\Device`, `\GLOBAL??\C:`, `\\GLOBAL??\C:`, `\GLOBAL??`, `\DosDevices\c:`,
			`\\.\Device\Harddisk0\Partition1`, `\.\Device\Harddisk0`, `\\.\Device`, `\\.\Device\C`,
		}},
		{"volumes", PowerDisk, []string{
			`\\.\C:`, `\\?\c:`, `//./C:`, `\\.\D:`, `\\.\C:.`, `\??\C:`, `\\.\GLOBALROOT\??\C:`, `\\.\C:x`, `\\.\c::$DATA`,
			`\\.\HarddiskVolume3`, `\\.\HarddiskVolumeShadowCopy1\Windows`, `\\?\GLOBALROOT\Device\HarddiskVolume3`, `\\?\GLOBALROOT\Device\HarddiskVolume3\Windows`,
			`\\?\Volume{0c1f9d2e-0000-0000-0000-100000000000}\`, `//?/volume{0c1f9d2e-0000-0000-0000-100000000000}/csi`, `\\.\BootPartition\Windows`,
		}},
		{"administrative shares", PowerShare, []string{
			`\\host\c$\Windows`, `\\host\C$`, `//host/ADMIN$`, `\\127.0.0.1\d$\data`, `\\host\Admin$\System32`, `\\host\C$.\x`, `\\host\C$::$INDEX_ALLOCATION`,
			`\\?\UNC\host\C$\x`, `\\.\UNC\host\admin$`, `\\?\UNC\.\C$\x`, `\\?\GLOBALROOT\Device\Mup\;x\host\C$`, `\\;x\c$\x`, `\\host@SSL@443\c$\x`, "\\\\host\\\u212a$",
		}},
		{"pipes", PowerPipe, []string{
			`\\.\pipe\containerd-containerd`, `//./pipe/docker_engine`, `npipe:////./pipe/docker_engine`, `\\.\PIPE\Rancher_Wins`, `\\.\pipe\dockershim`,
			`\\.\pipe\cri-dockerd`, `\\.\pipe\containerd-shim-k8s.io-1234-pipe`, `\\localhost\pipe\containerd-containerd`, `\\.\pipe\containerd-containerd.ttrpc`,
			`\\.\pipe\ProtectedPrefix\Administrators\containerd-shim-k8s.io-1234-pipe`, `\\.\pipe\ProtectedPrefix\Administrators`, `\\.\pipe\ProtectedPrefix`,
			`\\?\GLOBALROOT\Device\NamedPipe\docker_engine`, `\Device\NamedPipe\docker_engine`, `\\.\pipe\docker_engine_windows`,
		}},
		{"what a Guard never allows has the power of what it may name", PowerDisk, []string{`\\.\`, `\\?\GLOBALROOT`, `\\.\C:\..\x`, "\\\\.\\x\x00", `\\.\GLOBALROOT\Sessions\0`, `\\`}},
		{"all pipes", PowerPipe, []string{`\\.\pipe`, `\\host\ipc$`}},
		{"all shares of a host", PowerShare, []string{`\\host`, `//localhost/`}},
	}
	p := defaultPowers(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, path := range tt.paths {
				if got := p.JudgeMount(path, "").Power; got != tt.want {
					t.Errorf("%+q has the power %q, want %q", path, got, tt.want)
				}
			}
		})
	}
}

func TestJudgeMountLeavesOrdinaryMountsAlone(t *testing.T) {
	p := defaultPowers(t)
	for _, path := range []string{
		"", `C:\var\lib\kubelet`, `c:/var/lib/kubelet/plugins`, `C:\Windowsx`, `C:\csi`, `C:\x\Windows`, `C:\Windows\..\csi`, `C:\k`, `C:\etc\cni`, `/etc/cni`, `/etc/cni/net.d`,
		`/etcd`, `C:\etc\kubernetes2`, `C:\Window`, `/var/lib/windows`, `D:\`, `D:\Windows`, `\\?\D:\data`, `d:Windows`, `d:..`, "D:\\x\n", `\D:\Windows`, `/var/log`, `C:\backup~`, `C:\~x`,
		`C:\Program Files\x`, `/opt/cni/bin`, `/run/containerd/containerd.sock`, `/dev/sda`, `/devices`, `\x\device\harddisk0`, `C:\device\harddisk0`,
		`\\host\share`, `\\host\share\c$`, `\\fs\data$`, `\\fs\cc$`, `\\fs\1$`, `\\fs\admin`, `\\?\UNC\fs\data`, `\\.\mailslot\x`, `\\.\COM1`, `\\.\NUL`, `\Device\Null`,
		`\\.\pipe\csi-proxy-disk-v1`, `\\.\pipe\my-docker_engine`, `\\.\pipe\containerd`, `\\.\pipe\ProtectedPrefix\Administrators\x`, `\\.\pipe\protectedprefixes`, `uvm://D:\data\x`,
	} {
		if got := p.JudgeMount(path, "").Power; got != PowerNone {
			t.Errorf("%+q has the power %q", path, got)
		}
	}
}

func TestJudgeMountSeesThePowerOfASubPath(t *testing.T) {
	tests := []struct {
		name, hostPath, subPath string
		want                    Power
	}{
		{"the volume's own power stands", `C:\`, `csi`, PowerDirectory},
		{"a subPath does not make a disk harmless", `\\.\D:`, `data`, PowerDisk},
		{"a directory below an ordinary one", `C:\x`, `y`, PowerNone},
		{"dot-dot out of an ordinary one", `C:\x`, `..\Windows`, PowerDirectory},
		{"the root by dot-dot", `C:\x`, `..`, PowerDirectory},
		{"dot-dot that stays inside", `C:\x`, `y\..\z`, PowerNone},
		{"the second half of a share", `\\.\UNC\host`, `c$`, PowerShare},
		{"a share and a name like a share", `\\host\share`, `c$`, PowerNone},
		{"a device in the NT namespace", `\x\..\Device`, `Harddisk0\Partition1`, PowerDisk},
		{"a device below one that is none", `\Device\Null`, `x`, PowerNone},
		{"a pipe and a name below it", `\\.\pipe\x`, `docker_engine`, PowerNone},
		{"an empty path and a drive", ``, `C:\Windows`, PowerDirectory},
		{"a relative subPath of an empty path", ``, `Windows`, PowerDirectory},
	}
	p := defaultPowers(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := p.JudgeMount(tt.hostPath, tt.subPath).Power; got != tt.want {
				t.Errorf("%+q and %+q have the power %q, want %q", tt.hostPath, tt.subPath, got, tt.want)
			}
		})
	}
}

func TestTheRootOfADriveIsNotPowerfulUnlessListed(t *testing.T) {
	p, err := NewPowers(nil, []string{`c:/WINDOWS/System32/`, `E:\`})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]Power{
		`C:\`: PowerNone, `/`: PowerNone, `C:\x\..`: PowerNone, `C:\Windows`: PowerDirectory, `C:\Windows\Temp`: PowerNone, `C:\windows\system32\drivers`: PowerDirectory,
		`drivers`: PowerDirectory, `E:\`: PowerDirectory, `E:`: PowerDirectory, `E:\x`: PowerNone, `e:x`: PowerNone, `e:..`: PowerDirectory, `\\.\pipe\docker_engine`: PowerNone,
	} {
		if got := p.JudgeMount(path, "").Power; got != want {
			t.Errorf("%s has the power %q, want %q", path, got, want)
		}
	}
	for subPath, want := range map[string]Power{`Windows`: PowerDirectory, `Windows\Temp`: PowerNone, `x`: PowerNone} {
		if got := p.JudgeMount(`C:\`, subPath).Power; got != want {
			t.Errorf("%s below the root has the power %q, want %q", subPath, got, want)
		}
	}
}

func TestNothingListedLeavesDisksAndShares(t *testing.T) {
	p, err := NewPowers(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]Power{
		`C:\`: PowerNone, `C:\Windows`: PowerNone, `x`: PowerNone, `C:..`: PowerNone, "C:\\\x00": PowerNone, `\\.\pipe\docker_engine`: PowerNone,
		`\\.\C:`: PowerDisk, `\\h\c$`: PowerShare, `\Device\Harddisk0`: PowerDisk,
	} {
		if got := p.JudgeMount(path, "").Power; got != want {
			t.Errorf("%+q has the power %q, want %q", path, got, want)
		}
	}
}

func TestNewPowersRefusesWhatItCannotCompare(t *testing.T) {
	for _, tt := range []struct{ name, path, want string }{
		{"empty", "", "is not absolute"},
		{"no drive", `\Windows`, "is not absolute"},
		{"a Linux path", "/etc/kubernetes", "is not absolute"},
		{"relative to a drive", `C:Windows`, "is not absolute"},
		{"a drive alone", `C:`, "is not absolute"},
		{"a device", `\\.\PhysicalDrive0`, "is not absolute"},
		{"a share", `\\host\c$`, "is not absolute"},
		{"a device's spelling", `\\?\C:\Windows`, "is not absolute"},
		{"two letters", `CD:\x`, "is not absolute"},
		{"a dot", `C:\.\x`, "ends in a dot"},
		{"dot-dot", `C:\x\..`, "ends in a dot"},
		{"a trailing dot", `C:\Windows.`, "ends in a dot"},
		{"a trailing space", `C:\Windows \x`, "ends in a dot or a space"},
		{"a star", `C:\Windows*`, "has a character that no path has"},
		{"a stream", `C:\Windows:x`, "has a character that no path has"},
		{"NUL", "C:\\x\x00", "has a character that no path has"},
		{"not UTF-8", "C:\\\xff", "has a character that no path has"},
		{"a short name", `C:\WINDOW~1`, "has a short name"},
		{"too long", `C:\` + strings.Repeat("x", 1024), "is longer than 1024 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := NewPowers(nil, []string{`C:\`, tt.path})
			if p != nil || err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%q: %v, want an error with %q", tt.path, err, tt.want)
			}
		})
	}
}

func TestNewPowersReportsEveryFault(t *testing.T) {
	_, err := NewPowers([]string{"good", "a*b", ""}, []string{`C:\`, "x", `C:\y.`})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{`"a*b"`, `pattern ""`, `"x"`, `"C:\\y."`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v: does not name %s", err, want)
		}
	}
}

func TestDefaultsAreNotShared(t *testing.T) {
	DefaultPowerPaths()[0], DefaultPowerPipes()[0] = "changed", "changed"
	if DefaultPowerPaths()[0] == "changed" || DefaultPowerPipes()[0] == "changed" {
		t.Error("a caller's change reaches the next")
	}
}
