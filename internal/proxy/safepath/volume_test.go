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

func TestCheckVolumeAcceptsTheDirectoriesOfOneVolume(t *testing.T) {
	roots := testRoots(t, kubelet, `D:\csi\work`, `C:\var\lib\kubelet\plugins\own\deep`, `E:\k\pods`, `E:\k\plugins`)
	for _, path := range []string{
		kubelet + `\pods\0f5a\volumes\kubernetes.io~csi\pvc-1`, kubelet + `\pods\0f5a\volumes\kubernetes.io~csi\pvc-1\mount`,
		kubelet + `\pods\0f5a\volume-subpaths\pvc-1\main\0`,
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
	for _, s := range []string{kubelet, kubelet + `\pods`, kubelet + `\plugins\kubernetes.io\csi\pv\x\globalmount`, kubelet + `\\PODS\a\volumes\b\c\`, `D:\csi\work\x`, `D:\csi`} {
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
	})
}
