package chart_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/nodepolicy"
	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/internal/policyset"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
	"github.com/pipeguard/pipeguard/internal/proxy/acl/profiles"
)

// A profile of the chart that comes in a bundle, and the node's own profile of the same driver, are two ways to say the same.
func TestProfilesInABundleDecideAsThoseOfNodes(t *testing.T) {
	const kubelet, share = `D:\k`, `\\files.example\data`
	values := []string{"--set-json", `drivers.smb.shares=["\\\\files.example\\data"]`, "--set-json", `node.kubeletPath="D:\\k"`}
	var own acl.Spec
	for _, name := range slices.Sorted(maps.Keys(drivers)) {
		values = append(values, set("drivers."+name+".enabled=true")...)
		o := profiles.Options{Name: name, KubeletDir: kubelet}
		if name == "smb" {
			o.Shares = []string{share}
		}
		rules, err := profiles.Rules(o)
		if err != nil {
			t.Fatal(err)
		}
		own.Rules = append(own.Rules, rules...)
	}
	local, err := acl.New(own)
	if err != nil {
		t.Fatal(err)
	}

	params := parameters(t, render(t, values...), "pipeguard-parameters")
	named := slices.DeleteFunc(slices.Sorted(maps.Keys(params.PipePolicies)), func(name string) bool { return strings.HasSuffix(name, "-sidecars") })
	if diff := cmp.Diff(profiles.Names(), named); diff != "" {
		t.Fatalf("drivers (-nodes +chart):\n%s", diff)
	}
	b, err := policyset.BundleSources{Parameters: params}.Bundle()
	if err != nil {
		t.Fatal(err)
	}
	known := served(t)
	live, err := nodepolicy.Try(t.Context(), nodepolicy.Options{
		Served: known, Policy: nodepolicy.EngineOptions(policy.Options{BaseTested: true, Timeout: 20 * time.Second}),
	}, b)
	if err != nil {
		t.Fatal(err)
	}

	for name, d := range drivers {
		image := publishedIn(t, "drivers.yaml")[name].Modes["Pipes"][d.container].Images[0] + ":v1"
		is := caller.Caller{Assurance: "pod", Pod: caller.Pod{Namespace: d.namespace, ServiceAccount: d.serviceAccount}, Container: caller.Container{Name: d.container, Image: image}}
		callers := []caller.Caller{is, is, is, is, is}
		callers[1].Pod.Namespace, callers[2].Pod.ServiceAccount, callers[3].Container.Name, callers[4].Assurance = "other", "other", "other", "process"
		served, allowed := map[string]bool{}, map[string]bool{}
		// Images of others are for the bundle alone: a profile of nodes asks for none unless it is told.
		other := is
		other.Container.Image = "registry.example/driver:v1"
		if d := live.Decide(access.Call{Group: "filesystem", Version: "v1", Operation: "PathExists", Caller: other, Paths: []string{kubelet + `\plugins\x`}}); d.Effect == access.Allow {
			t.Errorf("%s: another image: %+v", name, d)
		}
		for _, api := range known {
			if !slices.Contains(d.pipes, api.Group+"-"+api.Version) {
				continue
			}
			for _, operation := range api.Operations {
				served[operation] = true
				for _, r := range calls(operation, kubelet, share) {
					r.Group, r.Version = api.Group, api.Version
					for i, who := range callers {
						r.Caller = who
						want, got := local.Decide(r), live.Decide(r)
						if want.Effect != got.Effect || want.Named != got.Named || len(want.Permits)+len(got.Permits) > 0 {
							t.Errorf("%s, caller %d, %s-%s %s %q %q: node %s, named %t; bundle %s, named %t", name, i, r.Group, r.Version, operation, r.Paths, r.Shares,
								want.Effect, want.Named, got.Effect, got.Named)
						}
						if got.Effect == access.Allow && got.Named && i == 0 {
							allowed[operation] = true
						}
					}
				}
			}
		}
		methods := slices.DeleteFunc(slices.Sorted(slices.Values(params.PipePolicies[name].Subjects[0].Methods)), func(m string) bool { return !served[m] })
		if diff := cmp.Diff(methods, slices.Sorted(maps.Keys(allowed))); diff != "" {
			t.Errorf("%s: methods for which the driver is named (-chart +bundle):\n%s", name, diff)
		}
	}
}

// calls are those of an operation with paths and shares that a profile permits, and with others.
func calls(operation, kubelet, share string) (out []access.Call) {
	shares := []string{share, `\\files.example\other`}
	if !access.TakesShares(operation) {
		shares = shares[:1]
	}
	for _, dir := range []string{`\plugins\x`, `\pods\x\y`, `\plugins`, `\pki`, ``, `\..\Windows`} {
		for _, s := range shares {
			r := access.Call{Operation: operation}
			for range access.TakesPaths(operation) {
				r.Paths = append(r.Paths, kubelet+dir)
			}
			if access.TakesShares(operation) {
				r.Shares = []string{s}
			}
			out = append(out, r)
		}
	}
	return out
}
