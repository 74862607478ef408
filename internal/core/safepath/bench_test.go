package safepath

import "testing"

func BenchmarkCheck(b *testing.B) {
	roots := testRoots(b)
	for _, bb := range []struct {
		name, path string
		accepted   bool
	}{
		{"mount", kubelet + `\pods\7f1c2b9e-0a3d-4e55-9d5b-2f6c8f0a1b2c\volumes\kubernetes.io~csi\pvc-5a1d\mount`, true},
		{"root", kubelet, true},
		{"outside", `C:\Windows\System32`, false},
		{"ill-formed", kubelet + `\..\x`, false},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := roots.Check(bb.path); (err == nil) != bb.accepted {
					b.Fatal(err)
				}
			}
		})
	}
}
