package pipepath

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	diskPipe = `\\.\pipe\csi-proxy-disk-v1`
	diskName = "csi-proxy-disk-v1"
)

// TestCanonicalFindsThePipeBehindEverySpelling lists routes to one pipe.
func TestCanonicalFindsThePipeBehindEverySpelling(t *testing.T) {
	want := Name{Kind: KindPipe, Canonical: diskPipe, Pipe: diskName}
	tests := map[string][]string{
		"the client module's own spelling": {`\\.\\pipe\\csi-proxy-disk-v1`},
		"separators of either kind, in any number": {
			`//./pipe/csi-proxy-disk-v1`, `/\.\/pipe//csi-proxy-disk-v1/`, `///////.///pipe\\\csi-proxy-disk-v1\\\`,
		},
		"schemes in any case, with any number of slashes": {
			`npipe:////./pipe/csi-proxy-disk-v1`, `npipe://./pipe/csi-proxy-disk-v1`, `NPIPE:\\\\.\pipe\csi-proxy-disk-v1`,
			`nPipe:/./pipe/csi-proxy-disk-v1`, `npipe:./pipe/csi-proxy-disk-v1`, `npipe:\\?\pipe\csi-proxy-disk-v1`,
			`uvm://\\.\pipe\csi-proxy-disk-v1`, `UVM:\/.\pipe\csi-proxy-disk-v1`, `sandbox://./pipe/csi-proxy-disk-v1`,
			`SandBox:\\localhost\pipe\csi-proxy-disk-v1`, `npipe:uvm://./pipe/csi-proxy-disk-v1`,
			"np\u0131pe://./pipe/csi-proxy-disk-v1", "\u017fandbox://./pipe/csi-proxy-disk-v1",
		},
		"dots and spaces at the end of any segment": {
			`\\.\pipe.\csi-proxy-disk-v1.`, `\\.\pipe . .\csi-proxy-disk-v1. . `, `\\?\global..\pipe\csi-proxy-disk-v1`,
			`\\?\globalroot. \device. \namedpipe. \csi-proxy-disk-v1`, `\\host.\pipe.\local.\csi-proxy-disk-v1`,
			`\\. \pipe\csi-proxy-disk-v1`, `\\?.\pipe\csi-proxy-disk-v1`, `\\?? .\pipe\csi-proxy-disk-v1`, `\??.\pipe\csi-proxy-disk-v1`,
			`\\? \globalroot\device\namedpipe\csi-proxy-disk-v1`, `\\ \globalroot\device\namedpipe\csi-proxy-disk-v1`,
			`\\ \ipc$\csi-proxy-disk-v1`, `\\?.\ipc$\pipe\csi-proxy-disk-v1`,
		},
		"segments that are a dot or spaces": {
			`\\.\.\pipe\.\csi-proxy-disk-v1\.`, `\\.\pipe\ \csi-proxy-disk-v1`, `\\.\ \pipe\csi-proxy-disk-v1\ `, `\\.\pipe\. \csi-proxy-disk-v1`,
			`\\?\unc\.\host\pipe\csi-proxy-disk-v1`, `\\?\unc\ \host\ \pipe\csi-proxy-disk-v1`,
			`\\?\unc\.\pipe\csi-proxy-disk-v1`, `\\?\unc\ \ipc$\csi-proxy-disk-v1`, `\\?\globalroot\device\mup\.\ipc$\pipe\csi-proxy-disk-v1`,
			`\\?\unc\.\pipe\.\local\ \csi-proxy-disk-v1\.`,
		},
		"the three markers": {
			`\\??\pipe\csi-proxy-disk-v1`, `\??\pipe\csi-proxy-disk-v1`, `/??/pipe/csi-proxy-disk-v1`, `\??\\\PIPE\csi-proxy-disk-v1`,
			`\\.\??\pipe\csi-proxy-disk-v1`, `\\?\??\??\pipe\csi-proxy-disk-v1`, `\.\??\pipe\csi-proxy-disk-v1`,
		},
		"a dot behind one separator, which is no marker": {
			`\.\Device\NamedPipe\csi-proxy-disk-v1`, `/./device/namedpipe/csi-proxy-disk-v1`, `\.\.\.\DEVICE\NamedPipe\csi-proxy-disk-v1`, `\./GLOBAL??/pipe/csi-proxy-disk-v1`,
			`\.\DosDevices\Global\pipe\csi-proxy-disk-v1`, `\.\.\??\pipe\csi-proxy-disk-v1`, `\.\.\??\.\pipe\csi-proxy-disk-v1`, `\.\device.\namedpipe \csi-proxy-disk-v1`,
			`\.\Device\Mup\localhost\pipe\csi-proxy-disk-v1`, `\.\Device\Mup\.\pipe\csi-proxy-disk-v1`, `\.\Device\WinDfs\Root\h\ipc$\csi-proxy-disk-v1`,
			`\. \Device\NamedPipe\csi-proxy-disk-v1`, `\ \Device\NamedPipe\csi-proxy-disk-v1`, `/ /??/pipe/csi-proxy-disk-v1`, `\ .\. \GLOBAL??\pipe\csi-proxy-disk-v1`,
			`\.\GLOBAL??\GLOBALROOT\Device\NamedPipe\csi-proxy-disk-v1`, `\.\DosDevices\UNC\.\pipe\csi-proxy-disk-v1`,
		},
		"the same with the marker's two separators": {
			`\\.\Device\NamedPipe\csi-proxy-disk-v1`, `//././device/namedpipe/csi-proxy-disk-v1`, `\\?\.\Device\NamedPipe\csi-proxy-disk-v1`, `\\.\Device\Mup\;x\h\pipe\csi-proxy-disk-v1`,
			`npipe:.\Device\NamedPipe\csi-proxy-disk-v1`, `\\.\Global\Device\NamedPipe\csi-proxy-disk-v1`, `\\ \device\namedpipe\csi-proxy-disk-v1`,
		},
		"a dot before the host that is a dot": {
			`\\?\.\unc\.\pipe\csi-proxy-disk-v1`, `\\?\globalroot\.\device\mup\.\pipe\csi-proxy-disk-v1`, `\\?\unc\.\.\pipe\csi-proxy-disk-v1`,
			`\\?\globalroot\device\.\mup\ \ipc$\csi-proxy-disk-v1`, `\.\device\.\mup\.\pipe\.\csi-proxy-disk-v1`,
		},
		"Global and GLOBALROOT in loops": {
			`\\.\GLOBAL\pipe\csi-proxy-disk-v1`, `\\.\Global\Global\pipe\csi-proxy-disk-v1`,
			`\\.\GLOBALROOT\DosDevices\pipe\csi-proxy-disk-v1`, `\\?\GLOBALROOT\DosDevices\Global\pipe\csi-proxy-disk-v1`,
			`\\?\GLOBALROOT\Global??\GLOBALROOT\??\GLOBALROOT\DosDevices\Global\GLOBALROOT\Device\NamedPipe\csi-proxy-disk-v1`,
			`\??\GLOBALROOT\??\pipe\csi-proxy-disk-v1`, `\\.\globalroot\??\.\globalroot\device\namedpipe\csi-proxy-disk-v1`,
		},
		"the NT name": {
			`\Device\NamedPipe\csi-proxy-disk-v1`, `/device/namedpipe/csi-proxy-disk-v1`, `\DEVICE\\NAMEDPIPE\\csi-proxy-disk-v1\`,
			`\DosDevices\pipe\csi-proxy-disk-v1`, `/dosdevices/Global/PIPE/csi-proxy-disk-v1`, `\GLOBAL??\pipe\csi-proxy-disk-v1`, `\\GLOBAL??\Global\pipe\csi-proxy-disk-v1`,
			`\\.\DosDevices\pipe\csi-proxy-disk-v1`, `\\.\GLOBAL??\pipe\csi-proxy-disk-v1`, `\DosDevices\GLOBALROOT\Device\NamedPipe\csi-proxy-disk-v1`,
			`\device.\namedpipe \csi-proxy-disk-v1`, `\device\.\namedpipe\csi-proxy-disk-v1`, `\\device\namedpipe\csi-proxy-disk-v1`,
			"\\dev\u0131ce\\namedp\u0130pe\\csi-proxy-disk-v1", `\device\namedpipe\LOCAL\csi-proxy-disk-v1`,
		},
		"UNC hosts of any name": {
			`\\localhost\pipe\csi-proxy-disk-v1`, `\\127.0.0.1\PIPE\csi-proxy-disk-v1`, `\\[::1]\pipe\csi-proxy-disk-v1`, `//2130706433/pipe/csi-proxy-disk-v1`,
			`\\--1.ipv6-literal.net\pipe\csi-proxy-disk-v1`, `\\win-node-7\IPC$\csi-proxy-disk-v1`, `\\win-node-7\IPC$\pipe\csi-proxy-disk-v1`,
			`\\host@SSL@443\pipe\csi-proxy-disk-v1`, `\\host\ipc$\LOCAL\csi-proxy-disk-v1`, `\\device\pipe\csi-proxy-disk-v1`,
		},
		"UNC behind a device": {
			`\\?\UNC\host\pipe\csi-proxy-disk-v1`, `\\.\UNC\host\ipc$\csi-proxy-disk-v1`, `\??\UNC\host\ipc$\pipe\csi-proxy-disk-v1`,
			`\\.\GLOBALROOT\??\UNC\localhost\pipe\csi-proxy-disk-v1`, `\\.\Global\UNC\localhost\pipe\csi-proxy-disk-v1`,
			`\\?\unc\?\pipe\csi-proxy-disk-v1`, `\\.\vmsmb\vsmb-x\ipc$\csi-proxy-disk-v1`, `\\.\vmsmb\vsmb-x\pipe\csi-proxy-disk-v1`,
			`\\.\GLOBALROOT\Device\vmsmb\vsmb-x\ipc$\pipe\csi-proxy-disk-v1`,
		},
		"redirectors, with and without ; segments": {
			`\\.\Mup\localhost\pipe\csi-proxy-disk-v1`, `\Device\Mup\localhost\pipe\csi-proxy-disk-v1`, `\\Device\Mup\;x\localhost\IPC$\csi-proxy-disk-v1`,
			`\\.\LanmanRedirector\localhost\pipe\csi-proxy-disk-v1`, `\DosDevices\UNC\localhost\pipe\csi-proxy-disk-v1`,
			`\\.\GLOBALROOT\Device\Mup\localhost\pipe\csi-proxy-disk-v1`, `\\.\GLOBALROOT\Device\Mup\;x\host\ipc$\pipe\csi-proxy-disk-v1`,
			`\\.\GLOBALROOT\Device\Mup\;LanmanRedirector\;Z:0000000000012345\host\ipc$\csi-proxy-disk-v1`,
			`\\?\GLOBALROOT\Device\LanmanRedirector\host\pipe\csi-proxy-disk-v1`, `\\?\GLOBALROOT\Device\LanmanRedirector\;x\host\pipe\csi-proxy-disk-v1`,
			`\\?\GLOBALROOT\Device\DfsClient\host\ipc$\csi-proxy-disk-v1`, `\\?\unc\;x\host\pipe\csi-proxy-disk-v1`,
			`\\;x\host\pipe\csi-proxy-disk-v1`, `\\;x\pipe\csi-proxy-disk-v1`, `\\?\unc\;x\;y\ipc$\csi-proxy-disk-v1`,
		},
		"LOCAL any number of times": {
			`\\.\pipe\LOCAL\csi-proxy-disk-v1`, `\\.\pipe\local\Local\LOCAL\csi-proxy-disk-v1`, `\\.\pipe\local \.\local.\csi-proxy-disk-v1`,
		},
		"letters that only folding makes plain": {
			"\\\\.\\p\u0131pe\\c\u017f\u0131-proxy-d\u0131\u017f\u212a-v1", "\\\\.\\P\u0130PE\\CS\u0130-PROXY-DIS\u212a-V1",
			"\\\\?\\GLOBALROOT\\DEV\u0130CE\\namedpipe\\csi-proxy-di\u017fk-v1",
		},
	}
	g := defaultGuard(t)
	for name, paths := range tests {
		t.Run(name, func(t *testing.T) {
			for _, path := range paths {
				if diff := cmp.Diff(want, Canonical(path)); diff != "" {
					t.Errorf("%q: -want +got\n%s", path, diff)
				}
				if v := g.Judge(path); !v.Match || v.NeverAllowed || v.Pattern != "csi-proxy*" {
					t.Errorf("%q: verdict %+v", path, v)
				}
			}
		})
	}
}

// TestCanonicalRefusesWhatNamesNoPipe lists paths that match whatever is guarded.
func TestCanonicalRefusesWhatNamesNoPipe(t *testing.T) {
	tests := []struct {
		name, path string
		kind       Kind
		canonical  string
	}{
		{"the pipe directory with a separator", `\\.\pipe\`, KindPipeRoot, `\\.\pipe`},
		{"the pipe directory by its NT name", `\Device\NamedPipe`, KindPipeRoot, `\\.\pipe`},
		{"the pipe directory by its NT name with slashes", `/device/namedpipe/`, KindPipeRoot, `\\.\pipe`},
		{"the pipe directory with an empty name", `\\.\pipe\ `, KindPipeRoot, `\\.\pipe`},
		{"LOCAL alone", `\\.\pipe\LOCAL\`, KindPipeRoot, `\\.\pipe`},
		{"IPC$ with pipe behind it", `\\host\ipc$\pipe`, KindPipeRoot, `\\.\pipe`},
		{"the pipe share", `\\host\pipe`, KindPipeRoot, `\\.\pipe`},
		{"the pipe share of a host called dot", `\\?\unc\.\pipe`, KindUNCHost, `\\pipe`},
		{"nothing but separators", `\/\`, KindAncestor, `\\`},
		{"a scheme and nothing else", `npipe:`, KindAncestor, `\\`},
		{"a scheme and its slashes", `uvm:////`, KindAncestor, `\\`},
		{"marker dot", `\\.`, KindAncestor, `\\.`},
		{"marker dot with slashes", `//./`, KindAncestor, `\\.`},
		{"marker question mark", `\\?`, KindAncestor, `\\.`},
		{"NT marker", `\??`, KindAncestor, `\\.`},
		{"NT marker with slashes", `/??/`, KindAncestor, `\\.`},
		{"NT marker behind two separators", `\\??\`, KindAncestor, `\\.`},
		{"marker and dots", `\\.\.\.`, KindAncestor, `\\.`},
		{"marker and a space", `\\. `, KindAncestor, `\\.`},
		{"Global", `\\.\Global`, KindAncestor, `\\.`},
		{"the root and its DOS devices", `\\?\GLOBALROOT\??`, KindAncestor, `\\.`},
		{"the root and the global DOS devices", `\\?\GLOBALROOT\GLOBAL??\`, KindAncestor, `\\.`},
		{"the NT root", `\\.\GLOBALROOT\`, KindAncestor, `\\.\globalroot`},
		{"the NT root through a loop", `\\.\GLOBALROOT\??\GLOBALROOT`, KindAncestor, `\\.\globalroot`},
		{"the NT devices", `\??\GLOBALROOT\Device\`, KindAncestor, `\device`},
		{"UNC without a host", `\\?\UNC\`, KindAncestor, `\\`},
		{"the redirector without a host", `\\.\GLOBALROOT\Device\Mup`, KindAncestor, `\\`},
		{"the redirector with options alone", `\\.\GLOBALROOT\Device\Mup\;x`, KindAncestor, `\\`},
		{"vmsmb without an id", `\\.\vmsmb\`, KindAncestor, `\\`},
		{"vmsmb without a share", `\\.\vmsmb\VSMB-x`, KindUNCHost, `\\vsmb-x`},
		{"a host", `//localhost/`, KindUNCHost, `\\localhost`},
		{"a host behind UNC", `\\?\UNC\LocalHost`, KindUNCHost, `\\localhost`},
		{"a host and a dot", `\\localhost\.`, KindUNCHost, `\\localhost`},
		{"a session's devices", `\\.\GLOBALROOT\Sessions\0\DosDevices\0-3e7\pipe\x`, KindNTOther, `\sessions\0\dosdevices\0-3e7\pipe\x`},
		{"a silo's devices", `\\?\globalroot\Silos\1234\Device\NamedPipe\x`, KindNTOther, `\silos\1234\device\namedpipe\x`},
		{"an unknown NT directory", `\\?\globalroot\Device2`, KindNTOther, `\device2`},
		{"GLOBALROOT inside the NT root", `\\?\globalroot\globalroot\device\namedpipe\x`, KindNTOther, `\globalroot\device\namedpipe\x`},
		{"NUL", "\\\\.\\pipe\\foo\x00", KindMalformed, "\\\\.\\pipe\\foo\x00"},
		{"a newline in a share", "\\\\host\\share\nx", KindMalformed, "\\\\host\\share\nx"},
		{"DEL", "//./PIPE/foo\x7f", KindMalformed, "\\\\.\\pipe\\foo\x7f"},
		{"a C1 control", "\\\\.\\pipe\\foo\u0085", KindMalformed, "\\\\.\\pipe\\foo\u0085"},
		{"right-to-left override", "\\\\.\\pipe\\\u202efoo", KindMalformed, "\\\\.\\pipe\\\u202efoo"},
		{"an isolate", "\\\\.\\pipe\\foo\u2066", KindMalformed, "\\\\.\\pipe\\foo\u2066"},
		{"the Arabic letter mark", "\\??\\\u061cpipe", KindMalformed, "\\??\\\u061cpipe"},
		{"bytes that are not UTF-8", "\\\\.\\pipe\\\xff\xfe", KindMalformed, "\\\\.\\pipe\\\ufffd\ufffd"},
		{"an encoded surrogate", "\\\\.\\pipe\\\xed\xa0\x80", KindMalformed, "\\\\.\\pipe\\\ufffd\ufffd\ufffd"},
		{"a replacement character, as JSON decoders write it", "\\\\.\\pipe\\\ufffd", KindMalformed, "\\\\.\\pipe\\\ufffd"},
		{"a control behind the NT name", "\\device\\namedpipe\\\x01", KindMalformed, "\\device\\namedpipe\\\x01"},
		{"a control and dot-dot", "\\\\.\\..\\pipe\x01", KindMalformed, "\\\\.\\..\\pipe\x01"},
		{"UNC to a host called question mark", `\\?\UNC\?\globalroot\device\namedpipe2`, KindMalformed, `\\?\unc\?\globalroot\device\namedpipe2`},
		{"a marker that may be a host", `\\? \mailslot\x`, KindMalformed, `\\? \mailslot\x`},
		{"dot-dot out of a device", `\\.\C:\..\pipe\csi-proxy-disk-v1`, KindMalformedDotdot, `\\.\c:\..\pipe\csi-proxy-disk-v1`},
		{"dot-dot out of a share", `\\host\share\..\..\pipe\x`, KindMalformedDotdot, `\\host\share\..\..\pipe\x`},
		{"dot-dot as a host", `\\..\pipe\x`, KindMalformedDotdot, `\\..\pipe\x`},
		{"dot-dot behind the NT name", `\Device\NamedPipe\..\x`, KindMalformedDotdot, `\device\namedpipe\..\x`},
		{"dot-dot within the NT name", `\Device\x\..\NamedPipe\x`, KindMalformedDotdot, `\device\x\..\namedpipe\x`},
		{"dot-dot before the NT marker", `\a:\..\??\pipe\csi-proxy-disk-v1`, KindMalformedDotdot, `\a:\..\??\pipe\csi-proxy-disk-v1`},
		{"dot-dot and a space", `\\.\x\.. \pipe\y`, KindMalformedDotdot, `\\.\x\.. \pipe\y`},
		{"three dots", `\\.\x\...\pipe\y`, KindMalformedDotdot, `\\.\x\...\pipe\y`},
		{"three dots as a host", `\\...\pipe\y`, KindMalformedDotdot, `\\...\pipe\y`},
		{"the NT devices behind the marker", `\\.\Device\`, KindAncestor, `\device`},
		{"the redirector behind the marker", `\\.\Device\Mup`, KindAncestor, `\\`},
		{"a session's devices behind the marker", `\\.\Sessions\0\DosDevices`, KindNTOther, `\sessions\0\dosdevices`},
		{"a session's devices behind a dot", `\.\Sessions\0\DosDevices\0-3e7\pipe\x`, KindNTOther, `\sessions\0\dosdevices\0-3e7\pipe\x`},
		{"a silo's devices behind a dot", `\./Silos/1/Device/NamedPipe/x`, KindNTOther, `\silos\1\device\namedpipe\x`},
		{"the pipe directory behind a dot", `/./device/namedpipe`, KindPipeRoot, `\\.\pipe`},
		{"the NT marker behind a dot", `\.\??`, KindAncestor, `\\.`},
		{"dot-dot behind the NT marker and a dot", `\??.\x\..\pipe`, KindMalformedDotdot, `\??.\x\..\pipe`},
		{"dot-dot behind the NT name and a dot", `\.\global?? \x\..\pipe`, KindMalformedDotdot, `\.\global?? \x\..\pipe`},
		{"dot-dot behind the NT marker", `\??\x\..\pipe`, KindMalformedDotdot, `\??\x\..\pipe`},
	}
	g, err := NewGuard("some-other-pipe")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := g.Judge(tt.path)
			want := Verdict{Name: Name{Kind: tt.kind, Canonical: tt.canonical}, Match: true, NeverAllowed: true}
			if diff := cmp.Diff(want, v); diff != "" {
				t.Errorf("%q: -want +got\n%s", tt.path, diff)
			}
		})
	}
}

// TestCanonicalLeavesHarmlessPathsAlone guards everything: these match nothing even so.
func TestCanonicalLeavesHarmlessPathsAlone(t *testing.T) {
	tests := []struct {
		name, path string
		kind       Kind
		canonical  string // empty: the path itself
	}{
		{"the empty path", "", KindPath, ""},
		{"a single separator", `/`, KindPath, ""},
		{"a Linux path", "/var/lib/kubelet/pipe/csi-proxy", KindPath, ""},
		{"a Linux path with dot-dot", "/var/../pipe/x", KindPath, ""},
		{"a Linux device", "/device/namedpipes/x", KindPath, ""},
		{"the NT devices, which the kubelet puts on C:", `\device`, KindPath, ""},
		{"another NT device, likewise", `\Device\Harddisk0\x`, KindPath, ""},
		{"a Linux data directory", "/data//x", KindPath, ""},
		{"a hidden Linux directory", "/.cache/x", KindPath, ""},
		{"one separator and a dot", `\.\pipe\csi-proxy`, KindPath, ""},
		{"one separator, dots and spaces", `\.\ \. \pipe\csi-proxy`, KindPath, ""},
		{"another NT device behind a dot, which the kubelet puts on C:", `\.\Device\Harddisk0\x`, KindPath, ""},
		{"a relative NT name behind a dot", `.\Device\NamedPipe\csi-proxy`, KindPath, ""},
		{"a drive and the NT name behind a dot", `C:\.\Device\NamedPipe\csi-proxy`, KindPath, ""},
		{"one separator and question mark", `\?\pipe\csi-proxy`, KindPath, ""},
		{"three question marks", `\???\pipe\csi-proxy`, KindPath, ""},
		{"no separator", `??\pipe\csi-proxy`, KindPath, ""},
		{"a relative NT name", `device\namedpipe\csi-proxy`, KindPath, ""},
		{"a drive with everything odd", "C:\\x\\..\\\u202e\x01\xff\\pipe", KindPath, ""},
		{"a drive and a UNC-like rest", `C:\\.\pipe\csi-proxy`, KindPath, ""},
		{"a drive and slashes", `c:////./pipe/csi-proxy`, KindPath, ""},
		{"an unknown scheme", `npipes://./pipe/csi-proxy`, KindPath, ""},
		{"a scheme behind a space", ` npipe://./pipe/csi-proxy`, KindPath, ""},
		{"a long name with a colon late", strings.Repeat("x", 100) + `:\\.\pipe`, KindPath, ""},
		{"a drive behind dot", `\\.\D:\data\`, KindDrive, `d:\data`},
		{"a drive behind question mark", `//?/c:/x/./y.`, KindDrive, `c:\x\y`},
		{"a drive behind the NT marker", `\??\C:\x`, KindDrive, `c:\x`},
		{"a drive behind loops", `\\?\Global\GLOBALROOT\DosDevices\C:\x`, KindDrive, `c:\x`},
		{"a bare drive", `\\.\C:`, KindDrive, `c:`},
		{"a drive whose letter is the Kelvin sign", "\\\\.\\\u212a:\\x", KindDrive, `k:\x`},
		{"a volume", `\\?\Volume{0c1f}\pipe\csi-proxy`, KindDOSDevice, `\\.\volume{0c1f}\pipe\csi-proxy`},
		{"a disk", `\\.\PhysicalDrive0`, KindDOSDevice, `\\.\physicaldrive0`},
		{"a device that begins like pipe", `\\.\pipes\csi-proxy`, KindDOSDevice, `\\.\pipes\csi-proxy`},
		{"a drive behind DosDevices", `\DosDevices\C:\x`, KindDrive, `c:\x`},
		{"a share behind a redirector", `\\.\Mup\host\share\x`, KindUNC, `\\host\share\x`},
		{"DosDevices and nothing in it", `/dosdevices`, KindPath, ""},
		{"no drive letter", `\\.\1:\pipe`, KindDOSDevice, `\\.\1:\pipe`},
		{"an NT disk", `\\.\GLOBALROOT\Device\HarddiskVolume3\pipe\csi-proxy`, KindNTDevice, `\device\harddiskvolume3\pipe\csi-proxy`},
		{"an NT disk behind a space", `\\?\globalroot\ \device\harddisk0`, KindNTDevice, `\device\harddisk0`},
		{"one separator, dot-dot and nothing of interest", `\device\x\..\y`, KindPath, ""},
		{"an NT disk behind the marker", `\\.\Device\HarddiskVolume3\x`, KindNTDevice, `\device\harddiskvolume3\x`},
		{"a mailslot by its NT name", `\\?\globalroot\??\globalroot\device\mailslot\x`, KindNTDevice, `\device\mailslot\x`},
		{"a share", `\\FileServer\Data$\csi-proxy\`, KindUNC, `\\fileserver\data$\csi-proxy`},
		{"a share with pipe below it", `//fs/data/pipe/csi-proxy`, KindUNC, `\\fs\data\pipe\csi-proxy`},
		{"a share that begins like IPC$", `\\fs\ipc\csi-proxy`, KindUNC, `\\fs\ipc\csi-proxy`},
		{"a share behind UNC", `\\?\UNC\FS\Data`, KindUNC, `\\fs\data`},
		{"a share behind redirector options", `\\.\globalroot\device\mup\;x\fs\data`, KindUNC, `\\fs\data`},
		{"a drive behind a scheme", `uvm://C:\pipe2\x`, KindUNC, `\\c:\pipe2\x`},
	}
	g, err := NewGuard("*")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.canonical == "" {
				tt.canonical = tt.path
			}
			want := Verdict{Name: Name{Kind: tt.kind, Canonical: tt.canonical}}
			if diff := cmp.Diff(want, g.Judge(tt.path)); diff != "" {
				t.Errorf("%q: -want +got\n%s", tt.path, diff)
			}
		})
	}
}

func TestEveryKindIsEitherNeverAllowedOrNeverMatchesOrAPipe(t *testing.T) {
	if Kind("new").neverMatches() {
		t.Error("an unknown kind passes for harmless")
	}
	for kind, want := range map[Kind]bool{
		KindPath: false, KindDrive: false, KindPipe: false, KindUNC: false, KindDOSDevice: false, KindNTDevice: false,
		KindPipeRoot: true, KindAncestor: true, KindUNCHost: true, KindNTOther: true, KindMalformed: true, KindMalformedDotdot: true,
	} {
		if kind.NeverAllowed() != want {
			t.Errorf("%s: NeverAllowed = %t", kind, !want)
		}
		if kind.neverMatches() != (!want && kind != KindPipe) {
			t.Errorf("%s: neverMatches = %t", kind, kind.neverMatches())
		}
	}
}
