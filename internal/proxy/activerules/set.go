package activerules

import (
	"cmp"
	"strconv"
	"sync/atomic"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/bundle"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/nodepolicy"
	"github.com/pipeguard/pipeguard/internal/proxy"
	"github.com/pipeguard/pipeguard/internal/proxy/requestpolicy"
)

// BundlePolicy is how records name the access list of a bundle.
const BundlePolicy = "bundle"

// Set has the rules of a node. Its methods may be called by many at once.
type Set struct {
	local   atomic.Pointer[proxy.Rules]
	bundles *Bundles
	last    atomic.Pointer[bound]
}

// Bundles are the cluster's rules on a node.
type Bundles struct {
	// Keeper knows whether there is a bundle within its validity period.
	Keeper interface {
		Valid() error
		Status() bundle.Status
	}
	// Node has the bundle that was activated last.
	Node interface{ Current() *nodepolicy.Live }
}

// bound are the rules of a bundle, made once for each, and again when one of its permissions has ended: a caller that is no longer
// named is a stranger on its open connections too.
type bound struct {
	live  *nodepolicy.Live
	list  *access.List // as it was then
	rules *proxy.Rules
}

// New returns a Set that denies every call until Use. Without bundles, the node's own rules decide about all pipes.
func New(bundles *Bundles) *Set { return &Set{bundles: bundles} }

// Use sets the node's own rules, for pipes that the cluster does not guard.
func (s *Set) Use(local *proxy.Rules) { s.local.Store(local) }

// Local are the node's own rules; nil before Use.
func (s *Set) Local() *proxy.Rules { return s.local.Load() }

// Bundle is the status of the bundle, nil if the configuration asks for none.
func (s *Set) Bundle() *bundle.Status {
	if s.bundles == nil {
		return nil
	}
	status := s.bundles.Keeper.Status()
	return &status
}

// Valid says whether calls can be allowed at all.
func (s *Set) Valid() error {
	if s.bundles == nil {
		return nil
	}
	return s.bundles.Keeper.Valid()
}

// Rules are the active rules of a pipe. For a pipe that a policy of the cluster guards they are the cluster's alone, whatever the
// node's own rules say of it. While there is no valid bundle it is not known which pipes those are, and all calls are denied.
func (s *Set) Rules(group, version string) *proxy.Rules {
	if s.bundles == nil {
		return s.local.Load()
	}
	if err := s.bundles.Keeper.Valid(); err != nil {
		return s.denyAll(err)
	}
	live := s.bundles.Node.Current()
	switch {
	case live == nil:
		return s.denyAll(errNotLive)
	case !live.IsGuarded(group, version):
		return s.local.Load()
	}
	list := live.List()
	if last := s.last.Load(); last != nil && last.live == live && last.list == list {
		return last.rules
	}
	rules := &proxy.Rules{List: live, RequestPolicy: requestpolicy.Over(live.Engine), Policy: &audit.Policy{
		Name: BundlePolicy, Revision: cmp.Or(live.PolicyRevision, strconv.FormatUint(live.Revision, 10)), Bundle: live.Revision,
	}}
	s.last.Store(&bound{live, list, rules})
	return rules
}
