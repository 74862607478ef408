package winhost

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/windows"

	"github.com/pipeguard/pipeguard/internal/proxy/handler"
	"github.com/pipeguard/pipeguard/internal/proxy/wmi"
)

func TestNewActsThroughWindows(t *testing.T) {
	d := newDisk(t)
	if _, err := New(Options{}); err == nil || !strings.Contains(err.Error(), "management service") || !strings.Contains(err.Error(), "working directories") {
		t.Errorf("got %v", err)
	}
	host, err := New(Options{Roots: d.roots, WMI: newFakeWMI(t)})
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Hosts().Filesystem.Mkdir(t.Context(), d.path("made")); err != nil || !d.has("made") {
		t.Errorf("got %v", err)
	}
	wants(t, host.Hosts().System.StopService(t.Context(), DefaultService, true, handler.Permits{Services: []string{"PipeguardTestB"}}), fs.ErrNotExist) // it is asked for first
}

// recorder is the mount manager of this host; it writes down that it was asked to change something.
type recorder struct {
	mountManager
	did *[]string
}

func (r recorder) Set(path string, id handler.VolumeID) error {
	*r.did = append(*r.did, path)
	return r.mountManager.Set(path, id)
}

func (r recorder) Delete(path string) error {
	*r.did = append(*r.did, path)
	return r.mountManager.Delete(path)
}

func TestTheMountManagerIsNotAskedForWhatLiesBeyondALink(t *testing.T) {
	d, outside := linked(t)
	v, _ := newVolumes(t)
	var did []string
	v.places, v.mounts = d.places, recorder{did: &did}
	for _, rel := range []string{`out\x`, `out\secret`, `out\a\b`} {
		path := d.path(rel)
		wants(t, v.MountVolume(t.Context(), volumeA, path, handler.Permits{}), fs.ErrPermission)
		wants(t, v.UnmountVolume(t.Context(), volumeA, path), fs.ErrPermission)
		_, err := v.VolumeIDFromTargetPath(t.Context(), path)
		wants(t, err, fs.ErrPermission)
	}
	wants(t, v.MountVolume(t.Context(), volumeA, d.path(""), handler.Permits{}), fs.ErrPermission)
	wants(t, v.UnmountVolume(t.Context(), volumeA, d.path("")), fs.ErrPermission)
	if len(did) > 0 {
		t.Errorf("it was asked to act on %v", did)
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 {
		t.Errorf("outside there is now %v, %v", entries, err)
	}
}

func TestMountingAVolumeThatIsNotThereIsTheMountManagersError(t *testing.T) {
	d := newDisk(t)
	d.mkdir("target")
	v, _ := newVolumes(t) // WMI says that A is there
	v.places, v.mounts = d.places, mountManager{}
	err := v.MountVolume(t.Context(), volumeA, d.path("target"), handler.Permits{})
	if err == nil || !d.has("target") {
		t.Fatalf("got %v, and the directory is there: %t", err, d.has("target"))
	}
	t.Log(err)
	d.mkdir("full")
	d.write(`full\file`)
	wants(t, v.MountVolume(t.Context(), volumeA, d.path("full"), handler.Permits{}), fs.ErrExist, "not empty")
	d.write("file")
	wants(t, v.MountVolume(t.Context(), volumeA, d.path("file"), handler.Permits{}), handler.ErrPrecondition)
	wants(t, v.MountVolume(t.Context(), volumeA, d.path("nothing"), handler.Permits{}), fs.ErrNotExist)
	for _, rel := range []string{"target", "file", "nothing", `nothing\x`} {
		wants(t, v.UnmountVolume(t.Context(), volumeA, d.path(rel)), nil)
	}
	if !d.has("target") || !d.has("file") {
		t.Error("an unmount removed what is no mount point")
	}
}

func TestTheMountManagersErrorsCarryTheirNumbers(t *testing.T) {
	d := newDisk(t)
	d.mkdir("plain")
	_, err := mountManager{}.At(filepath.Join(d.root, "plain"))
	if err == nil || !strings.Contains(err.Error(), "GetVolumeNameForVolumeMountPointW failed (target="+d.root) || !strings.Contains(err.Error(), "code=") {
		t.Errorf("At: %v", err)
	}
	if err := (mountManager{}).Delete(filepath.Join(d.root, "plain")); err == nil || !strings.Contains(err.Error(), "code=") || !d.has("plain") {
		t.Errorf("Delete: %v", err)
	}
	if _, err := (mountManager{}).At("a\x00b"); err == nil {
		t.Error("a NUL in a path was taken")
	}
}

func TestTheMountManagerNamesThePathsOfAVolume(t *testing.T) {
	drive := newDisk(t).root[:3]
	id, err := mountManager{}.At(drive[:2])
	if err != nil {
		t.Fatal(err)
	}
	if paths, err := (mountManager{}).Paths(id); err != nil || !slices.Contains(paths, drive) {
		t.Errorf("%s shows at %q, %v; want %s", id, paths, err, drive)
	}
	_, err = mountManager{}.Paths(volumeX)
	wants(t, err, fs.ErrNotExist)
	if got := texts([]uint16{'a', 0, 'b', 'c', 0, 0, 'd', 0}); !slices.Equal(got, []string{"a", "bc"}) {
		t.Errorf("got %q", got)
	}
	if got := texts([]uint16{'a'}); !slices.Equal(got, []string{"a"}) {
		t.Errorf("got %q", got)
	}
}

func TestTheVolumeOfADirectoryIsTheMountManagers(t *testing.T) {
	d := newDisk(t)
	d.mkdir(`a\b`)
	want, err := mountManager{}.At(d.root[:2])
	if err != nil {
		t.Fatalf("the volume of the drive: %v", err)
	}
	v, f := newVolumes(t)
	f.set("volC", "UniqueId", string(want))
	v.places = d.places
	for _, rel := range []string{"", "a", `a\b`} {
		if got, err := v.ClosestVolumeIDFromTargetPath(t.Context(), d.path(rel)); err != nil || got != want {
			t.Errorf("%q: got %q, %v; want %q", rel, got, err, want)
		}
	}
	_, err = v.ClosestVolumeIDFromTargetPath(t.Context(), d.path("nothing"))
	wants(t, err, fs.ErrNotExist)
	_, err = v.VolumeIDFromTargetPath(t.Context(), d.path("a"))
	wants(t, err, handler.ErrPrecondition, "not a mounted folder")
}

func TestDevicesThatAreNoDisks(t *testing.T) {
	for _, path := range []string{`\\?\PhysicalDrive999`, `\\?\no\such\device`, os.TempDir() + `\nothing`, "a\x00b"} {
		if _, _, err := (deviceDrivers{}).Describe(path); err == nil || !strings.Contains(err.Error(), "failed (target=") {
			t.Errorf("%q: %v", path, err)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, _, err := (deviceDrivers{}).Describe(file); err == nil {
			t.Error("a file is said to be a disk")
		}
	}
	// Nothing keeps it open.
	name, err := windows.UTF16PtrFromString(file)
	if err != nil {
		t.Fatal(err)
	}
	handle, err := windows.CreateFile(name, windows.DELETE, 0, nil, windows.OPEN_EXISTING, 0, 0)
	if err != nil {
		t.Fatalf("it is still open: %v", err)
	}
	_ = windows.CloseHandle(handle)
}

func TestAShareThatIsNotThereDoesNotAnswer(t *testing.T) {
	if answers, err := (redirector{}).Answers(os.TempDir()); !answers || err != nil {
		t.Errorf("a directory: %t, %v", answers, err)
	}
	if answers, err := (redirector{}).Answers(os.TempDir() + `\nothing`); answers || err != nil {
		t.Errorf("nothing: %t, %v", answers, err)
	}
	if answers, err := (redirector{}).Answers("a\x00b"); answers || err == nil {
		t.Errorf("no name: %t, %v", answers, err)
	}
}

func TestTheFirmwareAndTheStorageServiceOfThisHost(t *testing.T) {
	pool, err := wmi.Open(wmi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	host, err := New(Options{Roots: newDisk(t).roots, WMI: pool})
	if err != nil {
		t.Fatal(err)
	}
	h := host.Hosts()
	number, err := h.System.BIOSSerialNumber(t.Context())
	t.Logf("serial number %q, %v", number, err)
	// Wine has no such namespaces; a host that has them has disks.
	ids, err := h.Disk.ListDiskIDs(t.Context())
	if err != nil && !errors.Is(err, errUnsupported) && !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("ListDiskIDs: %v", err)
	}
	t.Logf("disks %v, %v", ids, err)
	err = h.SMB.RemoveSMBGlobalMapping(t.Context(), `\\pipeguard.invalid\none`)
	if !errors.Is(err, errUnsupported) && !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("RemoveSMBGlobalMapping: %v", err)
	}
	portals, err := h.ISCSI.ListTargetPortals(t.Context())
	t.Logf("portals %v, %v", portals, err)
}
