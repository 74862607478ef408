package handler

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/pipeguard/pipeguard/internal/core/safepath"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
)

// key is an operation's group and name.
type key struct{ group, operation string }

// Handlers carries out the operations of the groups whose hosts it was given.
type Handlers struct {
	groups     []string
	operations map[key]operation
}

// New takes the hosts to act on and the directories that paths in requests must lie in. It fails if an operation
// of a group that is offered would find no handler.
func New(hosts Hosts, roots *safepath.Roots) (*Handlers, error) {
	if roots == nil {
		return nil, errors.New("handle the node API: no working directories")
	}
	h := &Handlers{operations: map[key]operation{}}
	if hosts.Disk != nil {
		h.offer("disk", disk{hosts.Disk}.operations())
	}
	if hosts.Filesystem != nil {
		h.offer("filesystem", filesystem{hosts.Filesystem, roots}.operations())
	}
	if hosts.Volume != nil {
		h.offer("volume", volume{hosts.Volume, roots}.operations())
	}
	if hosts.SMB != nil {
		h.offer("smb", smb{hosts.SMB, roots}.operations())
	}
	if hosts.System != nil {
		h.offer("system", system{hosts.System}.operations())
	}
	if hosts.ISCSI != nil {
		h.offer("iscsi", iscsi{hosts.ISCSI}.operations())
	}
	if len(h.groups) == 0 {
		return nil, errors.New("handle the node API: no part of a host to act on")
	}
	apis, err := apiserver.Load(h.groups...)
	if err != nil {
		return nil, fmt.Errorf("handle the node API: %w", err)
	}
	if err := h.complete(apis); err != nil {
		return nil, fmt.Errorf("handle the node API: %w", err)
	}
	return h, nil
}

func (h *Handlers) offer(group string, operations map[string]operation) {
	h.groups = append(h.groups, group)
	for op, do := range operations {
		h.operations[key{group, op}] = do
	}
}

// complete compares the handlers with the operations of the published API, both ways.
func (h *Handlers) complete(apis []*apiserver.API) error {
	var faults []error
	published := map[key]bool{}
	for _, a := range apis {
		for _, op := range a.Operations() {
			n := key{op.Group, op.Name}
			if !published[n] && h.operations[n] == nil {
				faults = append(faults, fmt.Errorf("%s %s has no handler", op.Group, op.Name))
			}
			published[n] = true
		}
	}
	for n := range h.operations {
		if !published[n] {
			faults = append(faults, fmt.Errorf("%s %s is handled but not published", n.group, n.operation))
		}
	}
	return errors.Join(faults...)
}

// Groups returns the API groups that are offered: those whose part of the host is there.
func (h *Handlers) Groups() []string { return slices.Clone(h.groups) }

// Handle carries out a call and returns the response of the newest version. It has the form of an [apiserver.Handler];
// its errors carry gRPC codes.
func (h *Handlers) Handle(ctx context.Context, call *apiserver.Call) (proto.Message, error) {
	do := h.operations[key{call.Operation.Group, call.Operation.Name}]
	if do == nil {
		return nil, apiserver.NewOwnError(codes.Unimplemented, fmt.Sprintf("%s %s is not offered on this host", call.Operation.Group, call.Operation.Name))
	}
	if err := ctx.Err(); err != nil {
		return nil, asStatus(err)
	}
	response, err := do(ctx, call)
	if err != nil {
		return nil, asStatus(err)
	}
	return response, nil
}
