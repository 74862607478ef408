package clustercmd

import (
	"testing"
	"time"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/bundle"
	"github.com/pipeguard/pipeguard/internal/served"
)

func TestNodesThatDoNotEnforce(t *testing.T) {
	findsFaults(t, map[string]fault{
		"a node without a report":    {func(f *fakeAPI) { f.lists[atGuardedNodes] = []any{} }, "nodes", "Node win1: has not reported"},
		"a silent node":              {func(f *fakeAPI) { f.node(t).ReportedAt = ago(time.Hour) }, "nodes", "has not reported for 1h0m0s"},
		"a clock that is ahead":      {func(f *fakeAPI) { f.node(t).ReportedAt = ago(-time.Hour) }, "nodes", "Z, which is in the future: its clock is wrong"},
		"a local node":               {func(f *fakeAPI) { f.node(t).State, f.node(t).Message = v1alpha1.NodeLocal, "why" }, "nodes", "is Local: why"},
		"a node without a bundle":    {func(f *fakeAPI) { f.node(t).Bundle = nil }, "nodes", "reports no bundle"},
		"a node with an old bundle":  {func(f *fakeAPI) { f.node(t).Bundle.Revision = 6 }, "nodes", "decides by bundle 6 of pool windows, and 7 is published"},
		"a node with other policies": {func(f *fakeAPI) { f.node(t).Bundle.PolicyRevision = "sha256:0" }, "nodes", "by policy revision sha256:0"},
		"a node that refused":        {func(f *fakeAPI) { f.node(t).Bundle.Refused = "rollback" }, "nodes", "(rollback)"},
		"a node whose bundle ended":  {func(f *fakeAPI) { f.node(t).Bundle.Invalid = "expired" }, "nodes", "(expired)"},
	})
}

func TestClocksOfNodesMayDifferAsMuchAsThoseOfBundles(t *testing.T) {
	if served.MaxAhead != bundle.Skew {
		t.Errorf("reports %s, bundles %s", served.MaxAhead, bundle.Skew)
	}
}
