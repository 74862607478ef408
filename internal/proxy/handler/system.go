package handler

import (
	"context"
	"fmt"

	api "github.com/kubernetes-csi/csi-proxy/client/api/system/v1alpha1"
)

type system struct{ host System }

func (s system) operations() map[string]operation {
	return map[string]operation{
		"GetBIOSSerialNumber": typed(s.serialNumber),
		"StartService":        on((*api.StartServiceRequest).GetName, ParseServiceName, s.start),
		"StopService":         permitted((*api.StopServiceRequest).GetName, ParseServiceName, s.stop),
		"GetService":          on((*api.GetServiceRequest).GetName, ParseServiceName, s.service),
	}
}

func (s system) serialNumber(ctx context.Context, _ *api.GetBIOSSerialNumberRequest) (*api.GetBIOSSerialNumberResponse, error) {
	number, err := s.host.BIOSSerialNumber(ctx)
	return &api.GetBIOSSerialNumberResponse{SerialNumber: number}, err
}

func (s system) start(ctx context.Context, name ServiceName, _ *api.StartServiceRequest) (*api.StartServiceResponse, error) {
	return &api.StartServiceResponse{}, s.host.StartService(ctx, name)
}

func (s system) stop(ctx context.Context, name ServiceName, r *api.StopServiceRequest, permits Permits) (*api.StopServiceResponse, error) {
	return &api.StopServiceResponse{}, s.host.StopService(ctx, name, r.GetForce(), permits)
}

// service refuses a start type that the API has no number for: sent as it is, a client could take it for another.
func (s system) service(ctx context.Context, name ServiceName, _ *api.GetServiceRequest) (*api.GetServiceResponse, error) {
	info, err := s.host.Service(ctx, name)
	if err != nil {
		return nil, err
	}
	if info.StartType < StartBoot || info.StartType > StartDisabled || info.Status < ServiceUnknown || info.Status > ServicePaused {
		return nil, fmt.Errorf("service %s has start type %d and status %d, which the API cannot say", name, info.StartType, info.Status)
	}
	return &api.GetServiceResponse{
		DisplayName: info.DisplayName,
		StartType:   api.StartType(info.StartType),
		Status:      api.ServiceStatus(info.Status),
	}, nil
}
