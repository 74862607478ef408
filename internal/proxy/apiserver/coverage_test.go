package apiserver

import (
	"context"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// publishedMethodNames reads the full names of all methods from the descriptors that the client module registered.
func publishedMethodNames(services ...string) []string {
	var names []string
	protoregistry.GlobalFiles.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		for i := range f.Services().Len() {
			s := f.Services().Get(i)
			if !slices.Contains(services, string(s.Name())) || !strings.HasPrefix(string(f.Package()), "v") {
				continue
			}
			for j := range s.Methods().Len() {
				names = append(names, "/"+string(s.FullName())+"/"+string(s.Methods().Get(j).Name()))
			}
		}
		return true
	})
	slices.Sort(names)
	return names
}

func TestEveryPublishedMethodIsServed(t *testing.T) {
	want := publishedMethodNames("Disk", "Filesystem", "Volume", "Smb", "System", "Iscsi")
	if len(want) != 139 {
		t.Fatalf("the descriptors name %d methods: was one added, or is the enumeration wrong?", len(want))
	}
	if n := len(loadAll(t)); n != 23 {
		t.Errorf("%d versions of groups are served", n)
	}
	var got []string
	for _, a := range loadAll(t) {
		desc := a.Desc(func(context.Context, *Call) (proto.Message, error) { return nil, nil }, nil)
		for _, m := range desc.Methods {
			got = append(got, "/"+desc.ServiceName+"/"+m.MethodName)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("served %q\npublished %q", got, want)
	}
}

// ignoredFields are the request fields that may be set without a trace in the hub request.
var ignoredFields = map[string]bool{
	"v1alpha1.PathExistsRequest.context": true, "v1alpha1.MkdirRequest.context": true, "v1alpha1.RmdirRequest.context": true,
	"v1beta1.PathExistsRequest.context": true, "v1beta1.MkdirRequest.context": true, "v1beta1.RmdirRequest.context": true,
}

func TestEveryRequestFieldReachesTheHub(t *testing.T) {
	fields := 0
	for _, a := range loadAll(t) {
		for _, m := range a.Methods() {
			descriptor := m.NewRequest().ProtoReflect().Descriptor()
			for i := range descriptor.Fields().Len() {
				f := descriptor.Fields().Get(i)
				fields++
				request := m.NewRequest()
				for _, name := range []protoreflect.Name{"disk_id", "diskID"} {
					if disk := descriptor.Fields().ByName(name); disk != nil {
						request.ProtoReflect().Set(disk, protoreflect.ValueOfString("0")) // must be there, and is zero at the hub
					}
				}
				fillField(request, f)
				call, err := m.Call(request)
				if err != nil {
					t.Errorf("%s: %v", f.FullName(), err)
					continue
				}
				set := proto.Size(call.Request) > 0
				if ignored := ignoredFields[string(f.FullName())]; set == ignored {
					t.Errorf("%s: reaches the hub: %v, ignored: %v", f.FullName(), set, ignored)
				}
			}
		}
	}
	if fields < 120 {
		t.Errorf("only %d request fields were looked at", fields)
	}
}

func TestOperationsAreOneForAllVersions(t *testing.T) {
	seen := map[string]*Operation{}
	for _, a := range loadAll(t) {
		for _, op := range a.Operations() {
			name := op.Group + " " + op.Name
			if seen[name] != nil && seen[name] != op {
				t.Errorf("%s is two operations", name)
			}
			seen[name] = op
		}
	}
	if len(seen) != 8+6+11+2+4+8 {
		t.Errorf("%d operations", len(seen))
	}
	for name, op := range seen {
		asks := strings.HasPrefix(op.Name, "Get") || strings.HasPrefix(op.Name, "Is") || strings.HasPrefix(op.Name, "List") || op.Name == "PathExists" || op.Name == "DiscoverTargetPortal"
		if op.ReadOnly != asks {
			t.Errorf("%s: read only %v", name, op.ReadOnly)
		}
	}
}

func TestPipesAreNamedAsPublished(t *testing.T) {
	gv := GroupVersion{"filesystem", "v1alpha1"}
	if gv.String() != "filesystem-v1alpha1" || gv.Pipe() != "csi-proxy-filesystem-v1alpha1" {
		t.Errorf("%s, %s", gv, gv.Pipe())
	}
}
