package fakehost

import "github.com/pipeguard/pipeguard/internal/proxy/handler"

// Portal is an iSCSI portal of the network with its targets.
type Portal struct {
	handler.TargetPortal
	Targets []Target
}

// Target is an iSCSI target with its disks, whose numbers no other disk has.
type Target struct {
	IQN              handler.IQN
	Auth             handler.AuthType
	Username, Secret string // by which the node proves itself
	MutualSecret     string // by which the target proves itself to the node
	Disks            []Disk
}

// The portal of the default network, and its targets. Each target has one raw disk of 1 GiB.
const (
	PortalAddress              = "192.0.2.10" // port 3260
	OpenTarget     handler.IQN = "iqn.2026-01.example:open"
	CHAPTarget     handler.IQN = "iqn.2026-01.example:chap"
	MutualTarget   handler.IQN = "iqn.2026-01.example:mutual"
	CHAPUser                   = "iqn.1991-05.com.microsoft:node"
	CHAPSecret                 = "chap-s3cret-one"
	MutualSecret               = "chap-s3cret-two"
	firstISCSIDisk uint32      = 10
)

func defaultPortals() []Portal {
	disks := func(n uint32) []Disk {
		return []Disk{{Number: firstISCSIDisk + n, Size: gib, IDs: diskIDs(firstISCSIDisk + n), Location: diskLocation(firstISCSIDisk + n)}}
	}
	return []Portal{{
		TargetPortal: handler.TargetPortal{Address: PortalAddress, Port: 3260},
		Targets: []Target{
			{IQN: OpenTarget, Disks: disks(0)},
			{IQN: CHAPTarget, Auth: handler.AuthOneWayCHAP, Username: CHAPUser, Secret: CHAPSecret, Disks: disks(1)},
			{IQN: MutualTarget, Auth: handler.AuthMutualCHAP, Username: CHAPUser, Secret: CHAPSecret, MutualSecret: MutualSecret, Disks: disks(2)},
		},
	}}
}
