package apiserver

import (
	"testing"

	fsv1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	fsv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1alpha1"
	fsapi "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
)

const benchPath = `C:\var\lib\kubelet\pods\4b1d9a3e-6f0c-4c6e-9a53-0a6a6e2f0d11\volumes\kubernetes.io~csi\pvc-1\mount`

// BenchmarkConvert compares the compiled plans with assignments by hand, there and back.
func BenchmarkConvert(b *testing.B) {
	var call *Call
	var response proto.Message
	planned := func(version string, request proto.Message) func(*testing.B) {
		return func(b *testing.B) {
			_, m := find(b, "filesystem", version, "Rmdir")
			answer := &fsapi.RmdirResponse{}
			b.ReportAllocs()
			for b.Loop() {
				call, _ = m.Call(request)
				response, _ = m.respond(answer)
			}
		}
	}
	old := &fsv1alpha1.RmdirRequest{Path: benchPath, Force: true}
	b.Run("v1alpha1/plan", planned("v1alpha1", protoadapt.MessageV2Of(old)))
	b.Run("v1/plan", planned("v1", &fsv1.RmdirRequest{Path: benchPath, Force: true}))
	b.Run("v1alpha1/by-hand", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			call = &Call{Request: &fsapi.RmdirRequest{Path: old.GetPath(), Force: old.GetForce()}}
			response = protoadapt.MessageV2Of(&fsv1alpha1.RmdirResponse{})
		}
	})
	_, _ = call, response
}

// BenchmarkDecode is what the conversion stands beside: reading the request from its bytes.
func BenchmarkDecode(b *testing.B) {
	wire, err := proto.Marshal(&fsapi.RmdirRequest{Path: benchPath, Force: true})
	if err != nil {
		b.Fatal(err)
	}
	_, m := find(b, "filesystem", "v1", "Rmdir")
	b.ReportAllocs()
	for b.Loop() {
		if err := proto.Unmarshal(wire, m.NewRequest()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParams(b *testing.B) {
	call := callOf("filesystem", &fsapi.RmdirRequest{Path: benchPath, Force: true})
	b.ReportAllocs()
	for b.Loop() {
		Params(call)
		Targets(call)
	}
}
