package apiserver

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
)

// What is judged, recorded, carried out and passed on to an older server has one spelling of each path.
func TestEveryPathOfEveryRequestIsCanonicalEverywhere(t *testing.T) {
	const written, want = `C:\\var\lib\\\kubelet\x\\`, `C:\var\lib\kubelet\x`
	seen := 0
	for _, a := range loadAll(t) {
		for _, m := range a.Methods() {
			request := m.NewRequest()
			fields := request.ProtoReflect().Descriptor().Fields()
			paths := 0
			for i := range fields.Len() {
				if publishedClasses[classKey{a.GroupVersion().Group, fields.Get(i).Name()}] == classPath {
					request.ProtoReflect().Set(fields.Get(i), protoString(written))
					paths++
				}
			}
			if paths == 0 {
				continue
			}
			seen += paths
			before := proto.Clone(request)
			call, err := m.Call(request)
			if err != nil {
				if strings.Contains(err.Error(), "diskId") {
					continue
				}
				t.Fatalf("%s: %v", m.FullMethod, err)
			}
			if !proto.Equal(before, request) {
				t.Errorf("%s: the request that came was changed to %v", m.FullMethod, request)
			}
			var targets []string
			for _, target := range Targets(call) {
				if target.Kind == kindPath {
					targets = append(targets, target.Value)
				}
			}
			if got := strings.Join(targets, " "); got != strings.TrimSpace(strings.Repeat(want+" ", paths)) {
				t.Errorf("%s names %s", m.FullMethod, got)
			}
			params, _ := Params(call)
			if strings.Count(string(params), `kubelet\\x"`) != paths || strings.Contains(string(params), `\\\\`) {
				t.Errorf("%s: params are %s", m.FullMethod, params)
			}
			for i := range fields.Len() {
				if text := call.Served.ProtoReflect().Get(fields.Get(i)).String(); strings.HasPrefix(text, "C:") && text != want {
					t.Errorf("%s: %q is passed on", m.FullMethod, text)
				}
			}
		}
	}
	if seen < 40 {
		t.Errorf("only %d paths were looked at", seen)
	}
}

func TestARequestWithCanonicalPathsIsNotCopied(t *testing.T) {
	for _, a := range loadAll(t) {
		for _, m := range a.Methods() {
			if m.Name != "Mkdir" {
				continue
			}
			for _, path := range []string{`C:\x\y`, `\\server\\share\`, `\\?\C:\\x`, `C:/x//y`, ``} {
				request := m.NewRequest()
				request.ProtoReflect().Set(request.ProtoReflect().Descriptor().Fields().ByName("path"), protoString(path))
				if call, err := m.Call(request); err != nil || call.Served != request {
					t.Errorf("%s of %q: copied, %v", m.FullMethod, path, err)
				}
			}
		}
	}
}
