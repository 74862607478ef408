package handler

import (
	"math"
	"net/netip"

	api "github.com/kubernetes-csi/csi-proxy/client/api/iscsi/v1alpha2"

	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
)

// parsePortal accepts a host name or an IP address, and a port that fits: cut off instead, 68796 would be 3260.
func parsePortal(p *api.TargetPortal) (TargetPortal, error) {
	switch {
	case p == nil:
		return TargetPortal{}, invalid("target portal is empty")
	case p.GetTargetAddress() == "":
		return TargetPortal{}, invalid("target portal address is empty")
	case !isPortalAddress(p.GetTargetAddress()):
		return TargetPortal{}, invalid("target portal address %s is neither an IP address nor a host name", quoted(p.GetTargetAddress()))
	case p.GetTargetPort() > math.MaxUint16:
		return TargetPortal{}, invalid("target portal port %d is greater than %d", p.GetTargetPort(), math.MaxUint16)
	case p.GetTargetPort() == 0:
		return TargetPortal{p.GetTargetAddress(), apiserver.DefaultPortalPort}, nil
	}
	return TargetPortal{p.GetTargetAddress(), uint16(p.GetTargetPort())}, nil // #nosec G115 -- checked above
}

func isPortalAddress(s string) bool {
	if address, err := netip.ParseAddr(s); err == nil {
		return isOfAMachine(address)
	}
	return isHostName(s)
}
