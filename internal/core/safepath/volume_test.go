package safepath

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestCheckVolumeRefusesWhatManyVolumesShare(t *testing.T) {
	roots := testRoots(t, kubelet, `D:\csi\work`, `C:\var\lib\kubelet\plugins\own\deep`, `E:\k\pods`, `E:\k\plugins`)
	shared := []string{
		kubelet, kubelet + `\`, `C:\VAR\lib\\Kubelet`, `D:\csi\work`,
		kubelet + `\pods`, kubelet + `\PODS\`, kubelet + `\\pods\\`, kubelet + `\pods\0f5a`, kubelet + `\pods\0f5a\volumes`,
		kubelet + `\pods\0f5a\volumes\kubernetes.io~csi`, kubelet + `\pods\0f5a\plugins\kubernetes.io~csi`, kubelet + `\pods\0f5a\containers`,
		kubelet + `\plugins`, kubelet + `\Plugins\kubernetes.io`, kubelet + `\plugins\kubernetes.io\csi`, kubelet + `\plugins\KUBERNETES.IO\csi\pv`,
		kubelet + `\plugins\kubernetes.io\csi\disk.csi.azure.com`, kubelet + `\plugins\kubernetes.io\azure-disk\mounts`,
		kubelet + "\\pod\u017f", kubelet + "\\plug\u0131ns", kubelet + "\\plugins\\\u212aubernetes.io\\csi", `D:\csi\work\pods`, kubelet + `\plugins\own\deep\plugins\x`,
		kubelet + `\plugins\disk.csi.azure.com`, kubelet + `\plugins\kubernetes.io\csi\volumeDevices\staging`, kubelet + `\plugins\own`, kubelet + `\plugins\own\deep`,
		`E:\k\pods`, `E:\k\pods\0f5a`, `E:\k\pods\0f5a\volumes\kubernetes.io~csi`, `E:\k\plugins`, `E:\k\plugins\smb.csi.k8s.io`, `E:\k\plugins\kubernetes.io\csi\pv`,
	}
	for _, path := range shared {
		p, err := roots.CheckVolume(path)
		var refused *Error
		if !errors.As(err, &refused) || refused.Outside || refused.Path != path || !p.IsZero() {
			t.Errorf("%s: %q, %v", path, p, err)
		}
		if _, err := roots.Check(path); err != nil {
			t.Errorf("%s cannot be used: %v", path, err)
		}
	}
	for _, path := range []string{`C:\var\lib`, `C:\Windows`, `\\?\` + kubelet + `\a`, kubelet + `\..\a`, ``} {
		if _, err := roots.CheckVolume(path); err == nil {
			t.Errorf("%q is accepted", path)
		}
	}
}

// What lies in a pod's directory beside its volumes is the kubelet's, however deep.
func TestCheckVolumeRefusesWhatAPodHasBesideItsVolumes(t *testing.T) {
	roots := testRoots(t, kubelet, `D:\csi\work`, `E:\k\pods`)
	for _, path := range []string{
		kubelet + `\pods\0f5a\containers`, kubelet + `\pods\0f5a\containers\main\4c1d`, kubelet + `\pods\0f5a\containers\a\b\c\mount`, kubelet + `\PODS\0f5a\Containers\main\4c1d`,
		kubelet + `\pods\0f5a\plugins\kubernetes.io~csi\pvc-1`, kubelet + `\pods\0f5a\plugins\kubernetes.io~empty-dir\wrapped_x\ready`,
		kubelet + `\pods\0f5a\etc-hosts`, kubelet + `\pods\0f5a\etc-hosts\x\y`, kubelet + `\\pods\\0f5a\\etc-hosts\\x\\y\\`, "C:\\var\\lib\\kubelet\\pod\u017f\\0f5a\\containers\\main\\4c1d",
		kubelet + `\pods\0f5a\volumes-of-mine\kubernetes.io~csi\pvc-1`, kubelet + `\pods\0f5a\volume\kubernetes.io~csi\pvc-1`, kubelet + `\pods\0f5a\volumesubpaths\pvc-1\main\0`,
		kubelet + "\\pods\\0f5a\\volume\u017f\\kubernetes.io~csi\\pvc-1", kubelet + "\\pods\\0f5a\\volumeDev\u0131ces\\kubernetes.io~csi\\pvc-1", kubelet + `\pods\0f5a\x\volumes\kubernetes.io~csi\pvc-1\mount`,
		`D:\csi\work\pods\0f5a\containers\main\4c1d`, `E:\k\pods\0f5a\containers\main\4c1d`,
	} {
		p, err := roots.CheckVolume(path)
		var refused *Error
		if !errors.As(err, &refused) || refused.Outside || !strings.Contains(refused.Reason, "in none of its volumes, volumeDevices, volume-subpaths") || !p.IsZero() {
			t.Errorf("%s: %q, %v", path, p, err)
		}
		if _, err := roots.Check(path); err != nil {
			t.Errorf("%s cannot be used: %v", path, err)
		}
	}
}

func TestCheckVolumeAcceptsTheDirectoriesOfOneVolume(t *testing.T) {
	roots := testRoots(t, kubelet, `D:\csi\work`, `C:\var\lib\kubelet\plugins\own\deep`, `E:\k\pods`, `E:\k\plugins`)
	for _, path := range []string{
		kubelet + `\pods\0f5a\volumes\kubernetes.io~csi\pvc-1`, kubelet + `\pods\0f5a\volumes\kubernetes.io~csi\pvc-1\mount`,
		kubelet + `\pods\0f5a\volume-subpaths\pvc-1\main\0`, kubelet + `\pods\0f5a\volumeDevices\kubernetes.io~csi\pvc-1`,
		kubelet + `\PODS\0f5a\VOLUMES\kubernetes.io~csi\pvc-1\mount\`, kubelet + `\\pods\0f5a\Volumedevices\\kubernetes.io~csi\pvc-1`, kubelet + `\pods\0f5a\volumes\microsoft.com~smb.cmd\containers`,
		kubelet + `\plugins\kubernetes.io\csi\volumeDevices\publish\pvc-1\0f5a`,
		kubelet + `\plugins\kubernetes.io\csi\disk.csi.azure.com\6b86b273ff34fce1\globalmount`, kubelet + `\plugins\kubernetes.io\csi\pv\pvc-1\globalmount`,
		kubelet + `\plugins\kubernetes.io\csi\pv\pvc-1`, kubelet + `\plugins\kubernetes.io\azure-disk\mounts\m1`, kubelet + `\plugins\smb.csi.k8s.io\x`,
		kubelet + `\plugins\kubernetes.io\csi\volumeDevices\staging\pvc-1`, kubelet + `\plugins\own\deep\x`, kubelet + `\plugins\own\deep\x\pods`, kubelet + `\x`, kubelet + `\x\pods`, kubelet + `\pods-of-mine`,
		`D:\csi\work\x`, `D:\csi\work\x\plugins`, `E:\k\pods\0f5a\volumes\kubernetes.io~csi\pvc-1`, `E:\k\plugins\smb.csi.k8s.io\x`,
	} {
		p, err := roots.CheckVolume(path)
		if want, _ := roots.Check(path); err != nil || p.String() != want.String() || p.IsZero() {
			t.Errorf("%s: %q, %v", path, p, err)
		}
	}
}

// Whatever is accepted is not above anything that is refused for being shared, and no spelling changes the answer.
func FuzzCheckVolumeAcceptsNothingThatHoldsWhatIsShared(f *testing.F) {
	for _, s := range []string{kubelet, kubelet + `\pods`, kubelet + `\plugins\kubernetes.io\csi\pv\x\globalmount`, kubelet + `\\PODS\a\volumes\b\c\`, kubelet + `\pods\a\containers\b\c`, kubelet + `\pods\a\volumeDevices\b\c`, kubelet + "\\pod\u017f\\a\\volume\u017f\\b\\c", `D:\csi\work\x`, `D:\csi`} {
		f.Add(s)
	}
	roots := testRoots(f, kubelet, `D:\csi\work`, kubelet+`\plugins\own\deep`)
	shared := []string{kubelet, `D:\csi\work`, kubelet + `\pods\u\volumes\p`, kubelet + `\plugins\kubernetes.io\csi\pv`, kubelet + `\plugins\own\deep`, kubelet + `\plugins\d`}
	f.Fuzz(func(t *testing.T, path string) {
		p, err := roots.CheckVolume(path)
		if _, errAgain := roots.CheckVolume(Canonical(path)); (err == nil) != (errAgain == nil) {
			t.Fatalf("%q: %v, and in its canonical spelling %v", path, err, errAgain)
		}
		if err != nil {
			return
		}
		if _, err := roots.CheckVolume(p.String()); err != nil {
			t.Fatalf("%q is accepted, and %q is not: %v", path, p, err)
		}
		for _, dir := range shared {
			if at := strings.ToUpper(p.String()); strings.HasPrefix(strings.ToUpper(dir)+`\`, at+`\`) {
				t.Fatalf("%q is accepted, and %s lies in it", path, dir)
			}
		}
		if names := strings.Split(strings.ToUpper(p.String()), `\`); len(names) < 9 && slices.Equal(names[:min(5, len(names))], []string{"C:", "VAR", "LIB", "KUBELET", "PODS"}) {
			t.Fatalf("%q is accepted", path)
		}
		if rel := p.Rel(); len(rel) > 0 && p.Root() == kubelet && mayBe(rel[0], "pods") { // ToLower merges no letter with those of the names
			if !slices.Contains([]string{"volumes", "volumedevices", "volume-subpaths"}, strings.ToLower(rel[2])) {
				t.Fatalf("%q is accepted, and is beside the volumes of a pod", path)
			}
		}
	})
}
