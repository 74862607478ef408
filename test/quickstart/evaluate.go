package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/pipeguard/pipeguard/internal/bundle"
	"github.com/pipeguard/pipeguard/internal/config"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/nodepolicy"
	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
)

// ask asks the access list of the bundle about callers in pods, as a node does once it knows who they are.
func (b *pair) ask(ctx context.Context, s *story) error {
	live, err := b.live(ctx)
	if err != nil {
		return err
	}
	for _, c := range []struct {
		account, container, operation string
		want                          bool
	}{
		{"kube-system/csi-azuredisk-node-sa", "azuredisk", "PartitionDisk", true},
		{"kube-system/csi-azuredisk-node-sa", "azuredisk", "SetDiskState", false},
		{"kube-system/csi-azuredisk-node-sa", "liveness-probe", "PartitionDisk", false},
		{"shop/web", "iis", "ListDiskIDs", false},
	} {
		who := caller.Caller{Assurance: "pod", User: caller.User{SID: "S-1-5-93-2-1"}, Container: caller.Container{Name: c.container}}
		who.Pod.Namespace, who.Pod.ServiceAccount, _ = strings.Cut(c.account, "/")
		d := live.Decide(access.Call{Group: "disk", Version: "v1", Operation: c.operation, Caller: who})
		verdict := "denied"
		if d.Allowed {
			verdict = "allowed by " + d.Rule
		}
		s.show(fmt.Sprintf("%-14s %-34s %-15s %s", c.operation, c.account, c.container, verdict))
		if d.Allowed != c.want {
			return fmt.Errorf("%s by %s, container %s: %s", c.operation, c.account, c.container, d.Reason)
		}
	}
	return nil
}

// live is what a node that serves the node API makes of the bundle.
func (b *pair) live(ctx context.Context) (*nodepolicy.Live, error) {
	raw, err := bundle.ReadFile(b.bundle)
	if err != nil {
		return nil, err
	}
	content, _, err := bundle.Inspect(raw) // the proxy has verified it
	if err != nil {
		return nil, err
	}
	apis, err := apiserver.Load(apiserver.Groups()...)
	if err != nil {
		return nil, err
	}
	return nodepolicy.Try(ctx, nodepolicy.Options{Served: config.Proxy{}.Known(apis), Policy: nodepolicy.EngineOptions(policy.Options{})}, content)
}
