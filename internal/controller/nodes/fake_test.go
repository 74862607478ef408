package nodes

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
)

// server keeps the objects that the parts read and write.
type server struct {
	client.Writer

	mu       sync.Mutex // guards everything
	nodes    map[string]*v1alpha1.GuardedNode
	policies map[string]*v1alpha1.PipePolicy
	exist    map[string]bool // Nodes
	looked   int             // for Nodes
	patches  []string        // names
	fail     error
	list     func(context.Context) error // called first, if it is not nil
	version  int
	shared   bool // the last list of GuardedNodes gave its own objects, and not copies
}

func newServer() *server {
	return &server{nodes: map[string]*v1alpha1.GuardedNode{}, policies: map[string]*v1alpha1.PipePolicy{}, exist: map[string]bool{}}
}

func (s *server) put(n v1alpha1.GuardedNode) *v1alpha1.GuardedNode {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	n.ResourceVersion = strconv.Itoa(s.version)
	s.nodes[n.Name] = &n
	return n.DeepCopy()
}

// has returns how many patches were made, and what the status of a policy says of nodes.
func (s *server) has(policy string) (patches int, nodes *v1alpha1.NodeCounts) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.patches), s.policies[policy].Status.Nodes.DeepCopy()
}

func (s *server) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looked++
	if s.fail != nil {
		return s.fail
	}
	if kind := o.GetObjectKind().GroupVersionKind(); kind.Kind != "Node" || kind.Version != "v1" {
		return fmt.Errorf("get %s", kind)
	}
	if !s.exist[key.Name] {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "nodes"}, key.Name)
	}
	return nil
}

func (s *server) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if s.list != nil {
		if err := s.list(ctx); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch list := list.(type) {
	case *v1alpha1.GuardedNodeList:
		var given client.ListOptions
		given.ApplyOptions(opts)
		s.shared = given.UnsafeDisableDeepCopy != nil && *given.UnsafeDisableDeepCopy
		for _, n := range s.nodes {
			if !s.shared {
				n = n.DeepCopy()
			}
			list.Items = append(list.Items, *n)
		}
	case *v1alpha1.PipePolicyList:
		for _, p := range s.policies {
			list.Items = append(list.Items, *p.DeepCopy())
		}
	default:
		return fmt.Errorf("list %T", list)
	}
	return nil
}

func (s *server) Delete(_ context.Context, o client.Object, opts ...client.DeleteOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var given client.DeleteOptions
	given.ApplyOptions(opts)
	n := s.nodes[o.GetName()]
	if p := given.Preconditions; n == nil || p == nil || *p.UID != n.UID || *p.ResourceVersion != n.ResourceVersion {
		return apierrors.NewConflict(schema.GroupResource{Resource: "guardednodes"}, o.GetName(), nil)
	}
	delete(s.nodes, o.GetName())
	return nil
}

// statuses is the status of PipePolicies, to be patched.
type statuses struct {
	client.SubResourceWriter
	*server
}

func (s statuses) Patch(_ context.Context, o client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return s.fail
	}
	p := s.policies[o.GetName()]
	if p == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "pipepolicies"}, o.GetName())
	}
	text, err := patch.Data(o)
	if err != nil {
		return err
	}
	var given map[string]map[string]any
	if err := json.Unmarshal(text, &given); err != nil || len(given) != 1 || len(given["status"]) != 1 {
		return fmt.Errorf("a patch of more than the nodes: %s", text)
	}
	stored, err := json.Marshal(map[string]any{"nodes": p.Status.Nodes})
	if err != nil {
		return err
	}
	var status map[string]any
	if err := json.Unmarshal(stored, &status); err != nil {
		return err
	}
	merge(status, given["status"])
	if stored, err = json.Marshal(status); err != nil {
		return err
	}
	var now struct {
		Nodes *v1alpha1.NodeCounts `json:"nodes"`
	}
	if err := json.Unmarshal(stored, &now); err != nil {
		return err
	}
	p.Status.Nodes = now.Nodes
	s.patches = append(s.patches, o.GetName())
	return nil
}

// merge is RFC 7396.
func merge(into, patch map[string]any) {
	for key, value := range patch {
		below, isObject := value.(map[string]any)
		stored, wasObject := into[key].(map[string]any)
		switch {
		case value == nil:
			delete(into, key)
		case isObject && wasObject:
			merge(stored, below)
		case isObject:
			into[key] = map[string]any{}
			merge(into[key].(map[string]any), below)
		default:
			into[key] = value
		}
	}
}

// Create and Update are of both that are embedded.
func (s statuses) Create(context.Context, client.Object, client.Object, ...client.SubResourceCreateOption) error {
	panic("not used")
}

func (s statuses) Update(context.Context, client.Object, ...client.SubResourceUpdateOption) error {
	panic("not used")
}

// policy is one that decides at admission, and whose bundles are made.
func policy(name, revision string) *v1alpha1.PipePolicy {
	p := &v1alpha1.PipePolicy{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 2}}
	p.Status.ObservedGeneration, p.Status.Revision = 2, revision
	for _, kind := range []string{v1alpha1.ConditionCompiled, v1alpha1.ConditionTestsPassed, v1alpha1.ConditionBundlesPublished} {
		p.Status.Conditions = append(p.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, ObservedGeneration: 2})
	}
	return p
}
