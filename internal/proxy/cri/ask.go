package cri

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/pipeguard/pipeguard/internal/proxy/peer"
)

// inventory is what the runtime lists.
type inventory struct {
	containers []*runtimeapi.Container
	sandboxes  []*runtimeapi.PodSandbox
}

func (i inventory) size() int { return len(i.containers) + len(i.sandboxes) }

// list asks for everything, and for what runs alone where everything is more than the bound: containers that have ended stay listed
// for as long as their pod does, and the author of a pod decides how many that are. The list then has a gap.
func (c *Client) list(ctx context.Context) (peer.List, error) {
	all, err := c.inventory(ctx, nil, nil)
	switch {
	case status.Code(err) == codes.ResourceExhausted: // more than one message may hold
	case err != nil:
		return peer.List{}, err
	case all.size() <= peer.MaxCandidates:
		list, gap := candidates(all.containers, all.sandboxes)
		return peer.List{Candidates: list, Gap: gap}, nil
	}
	if all, err = c.unendedOnly(ctx); err != nil {
		return peer.List{}, err
	}
	list, _ := candidates(all.containers, all.sandboxes)
	gap := fmt.Sprintf("the runtime lists more than %d containers and sandboxes; those that have ended are left out", peer.MaxCandidates)
	if len(list) > peer.MaxCandidates {
		gap = fmt.Sprintf("the runtime lists more than %d containers and sandboxes that have not ended; some are left out", peer.MaxCandidates)
		c.keepKnown(list)
		list = list[:peer.MaxCandidates]
	}
	return peer.List{Candidates: list, Gap: gap}, nil
}

// keepKnown puts containers first that were recognised before, and those with a fault last.
func (c *Client) keepKnown(list []peer.Candidate) {
	before := map[string]bool{}
	for _, known := range c.Known().Candidates {
		before[known.Container.ID] = known.Fault == ""
	}
	rank := func(c peer.Candidate) int {
		switch {
		case c.Fault != "":
			return 2
		case before[c.Container.ID]:
			return 0
		}
		return 1
	}
	slices.SortStableFunc(list, func(a, b peer.Candidate) int { return cmp.Compare(rank(a), rank(b)) })
}

// unended are the states of a container in which a process of its own may call.
var unended = []runtimeapi.ContainerState{
	runtimeapi.ContainerState_CONTAINER_CREATED, // until its first process has been started, and that may already call
	runtimeapi.ContainerState_CONTAINER_RUNNING,
	runtimeapi.ContainerState_CONTAINER_UNKNOWN,
}

// unendedOnly lists everything but containers that have ended. One that changes its state between the questions may be listed twice,
// which is a fault of that container until the next list.
func (c *Client) unendedOnly(ctx context.Context) (inventory, error) {
	var states []*runtimeapi.ContainerFilter
	for _, state := range unended {
		states = append(states, &runtimeapi.ContainerFilter{State: &runtimeapi.ContainerStateValue{State: state}})
	}
	return c.inventory(ctx, &runtimeapi.PodSandboxFilter{State: &runtimeapi.PodSandboxStateValue{State: runtimeapi.PodSandboxState_SANDBOX_READY}}, states...)
}

// inventory lists the containers of each filter before sandboxes: what has a container then has a sandbox as well, unless it is going away.
// A nil filter selects all.
func (c *Client) inventory(ctx context.Context, sandboxes *runtimeapi.PodSandboxFilter, containers ...*runtimeapi.ContainerFilter) (all inventory, err error) {
	for _, filter := range containers {
		answer, err := c.runtime.ListContainers(ctx, &runtimeapi.ListContainersRequest{Filter: filter})
		if err != nil {
			return inventory{}, fmt.Errorf("list containers: %w", err)
		}
		all.containers = append(all.containers, answer.GetContainers()...)
	}
	answer, err := c.runtime.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{Filter: sandboxes})
	if err != nil {
		return inventory{}, fmt.Errorf("list sandboxes: %w", err)
	}
	all.sandboxes = answer.GetItems()
	return all, nil
}
