package handler

import "context"

// TargetPortal is an address at which iSCSI targets are found.
type TargetPortal struct {
	Address string // an IP address or a host name
	Port    uint16
}

// AuthType is how a login to a target is authenticated.
type AuthType int32

// Authentication types, with the numbers of the iscsi API.
const (
	AuthNone AuthType = iota
	AuthOneWayCHAP
	AuthMutualCHAP
)

// Login is how to log in to a target.
type Login struct {
	Auth     AuthType
	Username string
	Secret   Secret
}

// ISCSI is the part of a host that reaches disks of other machines. An unknown portal or target is fs.ErrNotExist.
type ISCSI interface {
	// AddTargetPortal adds a portal; one that is there already is success.
	AddTargetPortal(ctx context.Context, portal TargetPortal) error
	// DiscoverTargetPortal returns the targets of a portal that was added.
	DiscoverTargetPortal(ctx context.Context, portal TargetPortal) ([]IQN, error)
	ListTargetPortals(ctx context.Context) ([]TargetPortal, error)
	RemoveTargetPortal(ctx context.Context, portal TargetPortal) error
	// ConnectTarget logs in to a target of a portal; a target that is connected is success.
	ConnectTarget(ctx context.Context, portal TargetPortal, target IQN, login Login) error
	// DisconnectTarget logs out, for good; a target that is not connected is success.
	DisconnectTarget(ctx context.Context, portal TargetPortal, target IQN) error
	// TargetDisks returns the numbers of the disks of a target; of one that is not connected there are none.
	TargetDisks(ctx context.Context, portal TargetPortal, target IQN) ([]uint32, error)
	// SetMutualCHAPSecret sets the secret by which targets prove themselves to this node. There is one for all.
	SetMutualCHAPSecret(ctx context.Context, secret Secret) error
}
