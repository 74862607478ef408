package nodepolicy_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/bundle"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/nodepolicy"
	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/test/bundletest"
)

// many are n policies, each for the driver of a namespace of its own: half of them for disks, with a method that is spelled out,
// half for files in two directories.
func many(n int) []v1alpha1.PipePolicy {
	out := make([]v1alpha1.PipePolicy, n)
	for i := range out {
		out[i] = object(fmt.Sprintf("policy-%d", i), func(s *spec) {
			s.Subjects[0].Namespace, s.Subjects[0].Containers = fmt.Sprintf("team-%d", i), []string{"driver"}
			s.Subjects[0].Images = []string{"registry.example/azuredisk-csi*"}
			s.Node.Methods = []string{"ListDiskIDs", "Rescan", "PartitionDisk"}
			if i%2 == 1 {
				s.Pipes = []v1alpha1.PipePattern{"csi-proxy-filesystem-*"}
				s.Node.Methods = []string{"PathExists", "Mkdir", "CreateSymlink"}
				s.Node.PathPrefixes = []string{`C:\var\lib\kubelet\plugins`, `C:\var\lib\kubelet\pods`}
			}
		})
	}
	return out
}

// served are all pipes of a node.
func served(b *testing.B) (out []access.API) {
	b.Helper()
	apis, err := apiserver.Load(apiserver.Groups()...)
	if err != nil {
		b.Fatal(err)
	}
	for _, a := range apis {
		one := access.API{Group: a.GroupVersion().Group, Version: a.GroupVersion().Version}
		for _, op := range a.Operations() {
			one.Operations = append(one.Operations, op.Name)
		}
		out = append(out, one)
	}
	return out
}

// likeTheProxy are the options of cmd/proxy.
func likeTheProxy(b *testing.B) nodepolicy.Options {
	b.Helper()
	return nodepolicy.Options{
		Served: served(b), Policy: nodepolicy.EngineOptions(policy.Options{BaseTested: true}),
		Now: func() time.Time { return now },
	}
}

// BenchmarkActivate is what a new bundle costs a node: its signature and its form are checked, it is compiled and tried; and
// all of it, with the bundle stored on the disk before it counts.
func BenchmarkActivate(b *testing.B) {
	key := bundletest.NewKey(b)
	keys, err := bundle.ParseKeys(key.PublicPEM())
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range []int{10, 1_000} {
		made := content(b, many(n)...)
		raw, err := bundle.Build(made, key)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("verify/policies=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := keys.Verify(raw); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(raw)), "bytes/bundle")
		})
		b.Run(fmt.Sprintf("prepare/policies=%d", n), func(b *testing.B) {
			got, seal, err := keys.Verify(raw)
			if err != nil {
				b.Fatal(err)
			}
			node := nodepolicy.New(likeTheProxy(b))
			b.ReportAllocs()
			for b.Loop() {
				commit, err := node.Prepare(b.Context(), got, seal)
				if err != nil {
					b.Fatal(err)
				}
				commit()
			}
			if !node.Current().IsGuarded("disk", "v1") {
				b.Fatal("no policy guards disks")
			}
		})
		b.Run(fmt.Sprintf("all/policies=%d", n), func(b *testing.B) {
			k, err := bundle.NewKeeper(b.Context(), bundle.Options{
				Keys: keys, Audience: "windows", Dir: b.TempDir(), Prepare: nodepolicy.New(likeTheProxy(b)).Prepare, Now: func() time.Time { return now },
			})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				made.Revision++
				raw, err := bundle.Build(made, key)
				if err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				if _, err := k.Offer(b.Context(), raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkDecide asks the list of a bundle, and its Rego, about calls.
func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{10, 1_000} {
		live, err := nodepolicy.Try(b.Context(), likeTheProxy(b), content(b, many(n)...))
		if err != nil {
			b.Fatal(err)
		}
		last := driver(func(c *caller.Caller) { c.Pod.Namespace, c.Container.Name = fmt.Sprintf("team-%d", n-2), "driver" })
		for _, c := range []struct {
			name string
			r    access.Call
			want access.Effect
		}{
			{"allowed", call("disk", "v1", "PartitionDisk", last), access.Allow},
			{"denied", call("disk", "v1", "PartitionDisk", driver()), access.Deny},
		} {
			b.Run(fmt.Sprintf("list/%s/policies=%d", c.name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if d := live.Decide(c.r); d.Effect != c.want {
						b.Fatalf("%+v", d)
					}
				}
			})
		}
		input, err := policy.ToValue(map[string]any{
			"peer": map[string]any{
				"assurance": "pod", "process": map[string]any{"pid": 4242, "start": "", "exe": `C:\driver.exe`}, "user": map[string]any{"sid": "S-1-5-93-2-1", "name": ""},
				"pod":       map[string]any{"namespace": last.Pod.Namespace, "name": "x", "uid": "u", "serviceAccount": last.Pod.ServiceAccount},
				"container": map[string]any{"id": "c0ffee", "name": "driver", "image": last.Container.Image, "hostProcess": false}, "token": false,
			},
			"named": live.Decide(call("disk", "v1", "PartitionDisk", last)).Named, "pipe": "csi-proxy-disk-v1", "group": "disk", "version": "v1", "method": "PartitionDisk", "operation": "PartitionDisk",
			"request": map[string]any{"disk_number": 7}, "node": "win-1", "now": "2026-01-02T03:04:05Z",
		})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("rego/allowed/policies=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if d, err := live.Engine.Decide(b.Context(), input); err != nil || !d.Allowed {
					b.Fatalf("%+v, %v", d, err)
				}
			}
		})
	}
}
