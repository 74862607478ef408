package handler

import (
	"context"

	api "github.com/kubernetes-csi/csi-proxy/client/api/iscsi/v1alpha2"
)

type iscsi struct{ host ISCSI }

func (i iscsi) operations() map[string]operation {
	return map[string]operation{
		"AddTargetPortal":      on((*api.AddTargetPortalRequest).GetTargetPortal, parsePortal, i.add),
		"DiscoverTargetPortal": on((*api.DiscoverTargetPortalRequest).GetTargetPortal, parsePortal, i.discover),
		"RemoveTargetPortal":   on((*api.RemoveTargetPortalRequest).GetTargetPortal, parsePortal, i.remove),
		"ListTargetPortals":    typed(i.list),
		"ConnectTarget":        on((*api.ConnectTargetRequest).GetTargetPortal, parsePortal, i.connect),
		"DisconnectTarget":     on((*api.DisconnectTargetRequest).GetTargetPortal, parsePortal, i.disconnect),
		"GetTargetDisks":       on((*api.GetTargetDisksRequest).GetTargetPortal, parsePortal, i.disks),
		"SetMutualChapSecret":  typed(i.setSecret),
	}
}

func (i iscsi) add(ctx context.Context, portal TargetPortal, _ *api.AddTargetPortalRequest) (*api.AddTargetPortalResponse, error) {
	return &api.AddTargetPortalResponse{}, i.host.AddTargetPortal(ctx, portal)
}

func (i iscsi) discover(ctx context.Context, portal TargetPortal, _ *api.DiscoverTargetPortalRequest) (*api.DiscoverTargetPortalResponse, error) {
	targets, err := i.host.DiscoverTargetPortal(ctx, portal)
	response := &api.DiscoverTargetPortalResponse{}
	for _, target := range targets {
		response.Iqns = append(response.Iqns, string(target))
	}
	return response, err
}

func (i iscsi) remove(ctx context.Context, portal TargetPortal, _ *api.RemoveTargetPortalRequest) (*api.RemoveTargetPortalResponse, error) {
	return &api.RemoveTargetPortalResponse{}, i.host.RemoveTargetPortal(ctx, portal)
}

func (i iscsi) list(ctx context.Context, _ *api.ListTargetPortalsRequest) (*api.ListTargetPortalsResponse, error) {
	portals, err := i.host.ListTargetPortals(ctx)
	response := &api.ListTargetPortalsResponse{}
	for _, p := range portals {
		response.TargetPortals = append(response.TargetPortals, &api.TargetPortal{TargetAddress: p.Address, TargetPort: uint32(p.Port)})
	}
	return response, err
}

func (i iscsi) connect(ctx context.Context, portal TargetPortal, r *api.ConnectTargetRequest) (*api.ConnectTargetResponse, error) {
	target, err := ParseIQN(r.GetIqn())
	if err != nil {
		return nil, err
	}
	login, err := parseLogin(r)
	if err != nil {
		return nil, err
	}
	return &api.ConnectTargetResponse{}, i.host.ConnectTarget(ctx, portal, target, login)
}

func (i iscsi) disconnect(ctx context.Context, portal TargetPortal, r *api.DisconnectTargetRequest) (*api.DisconnectTargetResponse, error) {
	target, err := ParseIQN(r.GetIqn())
	if err != nil {
		return nil, err
	}
	return &api.DisconnectTargetResponse{}, i.host.DisconnectTarget(ctx, portal, target)
}

func (i iscsi) disks(ctx context.Context, portal TargetPortal, r *api.GetTargetDisksRequest) (*api.GetTargetDisksResponse, error) {
	target, err := ParseIQN(r.GetIqn())
	if err != nil {
		return nil, err
	}
	disks, err := i.host.TargetDisks(ctx, portal, target)
	response := &api.GetTargetDisksResponse{}
	for _, number := range disks {
		response.DiskIDs = append(response.DiskIDs, decimal(number))
	}
	return response, err
}

// maxCHAPSecret is the limit that the published API names, in bytes. It also asks for 12 at least, but only on
// connections without IPsec, and which these will be is not known here.
const maxCHAPSecret = 16

func (i iscsi) setSecret(ctx context.Context, r *api.SetMutualChapSecretRequest) (*api.SetMutualChapSecretResponse, error) {
	secret, err := checkSecret("mutual CHAP secret", r.GetMutualChapSecret(), maxCHAPSecret)
	switch {
	case err != nil:
		return nil, err
	case secret.IsEmpty():
		return nil, invalid("mutual CHAP secret is empty")
	}
	return &api.SetMutualChapSecretResponse{}, i.host.SetMutualCHAPSecret(ctx, secret)
}

// parseLogin leaves out a name and a secret that the authentication type does not use. A name may be missing: Windows
// then takes the node's own.
func parseLogin(r *api.ConnectTargetRequest) (Login, error) {
	auth := AuthType(r.GetAuthType())
	switch auth {
	case AuthNone:
		return Login{}, nil
	case AuthOneWayCHAP, AuthMutualCHAP:
	default:
		return Login{}, invalid("invalid authentication type authType=%d", auth)
	}
	if err := checkUsername("CHAP username", r.GetChapUsername()); err != nil {
		return Login{}, err
	}
	secret, err := checkSecret("CHAP secret", r.GetChapSecret(), maxCredential)
	switch {
	case err != nil:
		return Login{}, err
	case secret.IsEmpty():
		return Login{}, invalid("CHAP secret is empty")
	}
	return Login{Auth: auth, Username: r.GetChapUsername(), Secret: secret}, nil
}
