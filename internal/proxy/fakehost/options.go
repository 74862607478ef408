package fakehost

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/pipeguard/pipeguard/internal/core/safepath"
	"github.com/pipeguard/pipeguard/internal/proxy/handler"
)

// Options say what the host holds when it starts, and what it can reach. The zero value is a node with a system disk, two
// data disks with one volume each, a raw disk, and a few services, on a network with two shares and an iSCSI portal.
type Options struct {
	// Roots are the working directories. A link that was planted is followed only into one of them.
	Roots *safepath.Roots
	// Disks replace the default ones.
	Disks []Disk
	// Services replace the default ones.
	Services []Service
	// Shares replace the default ones of the network.
	Shares []Share
	// Portals replace the default one of the network.
	Portals []Portal
	// BIOSSerial is the serial number of the machine.
	BIOSSerial string

	// Fault, if set, is asked before every operation, and an error from it is the operation's. The host is
	// as it was, and the ledger shows nothing.
	Fault func(op string, args ...string) error
	// Block, if set, is called before every operation, even before Fault, and delays it until it returns.
	Block func(ctx context.Context, op string, args ...string)
	// Journal, if set, takes a Line before every operation and one after it, each by one Write: a file of which every write
	// goes to the system says what was done even if this process is killed. What has no Line is not done.
	Journal io.Writer
}

// Disk is a disk with its volumes. One without volumes is raw.
type Disk struct {
	Number   uint32
	System   bool  // the host runs from it: without a permit nothing about it can be changed
	Size     int64 // in bytes; 0 for as much as its volumes can grow to
	Offline  bool
	IDs      handler.DiskIDs
	Location handler.DiskLocation // the zero value is one that the host cannot tell
	Volumes  []Volume
}

// Volume is a volume on a partition of its own.
type Volume struct {
	ID        handler.VolumeID
	Partition uint32 // from 1
	Size      int64  // of the partition, in bytes
	MaxSize   int64  // to which the partition can grow, in bytes
	Used      int64  // bytes in use
	Formatted bool
	Drive     byte // letter, upper case; 0 if it has none
}

// Service is a service of the host. Services that DependsOn others start them and stop before them.
type Service struct {
	Name        handler.ServiceName
	DisplayName string
	StartType   handler.StartType
	Status      handler.ServiceStatus
	DependsOn   []handler.ServiceName
}

const (
	mib = 1 << 20
	gib = 1 << 30
)

// Volumes of the default disks.
const (
	SystemVolume      handler.VolumeID = `\\?\Volume{00000000-0000-4000-8000-000000000001}\` // disk 0, drive C, formatted
	FormattedVolume   handler.VolumeID = `\\?\Volume{00000000-0000-4000-8000-000000000002}\` // disk 1, 10 GiB of 20 GiB
	UnformattedVolume handler.VolumeID = `\\?\Volume{00000000-0000-4000-8000-000000000003}\` // disk 2, 5 GiB
)

// RawDisk is the number of the default disk that has no partition. It has 8 GiB and is offline.
const RawDisk uint32 = 3

func (o Options) withDefaults() Options {
	if o.Disks == nil {
		o.Disks = []Disk{
			{Number: 0, System: true, IDs: diskIDs(0), Location: diskLocation(0), Volumes: []Volume{
				{ID: SystemVolume, Partition: 1, Size: 100 * gib, MaxSize: 100 * gib, Used: 40 * gib, Formatted: true, Drive: 'C'},
			}},
			{Number: 1, IDs: diskIDs(1), Location: diskLocation(1), Volumes: []Volume{
				{ID: FormattedVolume, Partition: 1, Size: 10 * gib, MaxSize: 20 * gib, Used: 50 * mib, Formatted: true},
			}},
			{Number: 2, IDs: diskIDs(2), Location: diskLocation(2), Volumes: []Volume{
				{ID: UnformattedVolume, Partition: 1, Size: 5 * gib, MaxSize: 5 * gib},
			}},
			{Number: RawDisk, Size: 8 * gib, Offline: true, IDs: handler.DiskIDs{SerialNumber: "FAKE-DISK-3"}}, // of a kind without page 83, on a bus without places
		}
	}
	if o.Services == nil {
		o.Services = []Service{
			{Name: "RpcSs", DisplayName: "Remote Procedure Call (RPC)", StartType: handler.StartAutomatic, Status: handler.ServiceRunning},
			{Name: "MSiSCSI", DisplayName: "Microsoft iSCSI Initiator Service", StartType: handler.StartManual, Status: handler.ServiceStopped},
			{Name: "LanmanWorkstation", DisplayName: "Workstation", StartType: handler.StartAutomatic, Status: handler.ServiceRunning},
			{Name: "SessionEnv", DisplayName: "Remote Desktop Configuration", StartType: handler.StartManual, Status: handler.ServiceRunning,
				DependsOn: []handler.ServiceName{"RpcSs", "LanmanWorkstation"}},
			{Name: "Netlogon", DisplayName: "Netlogon", StartType: handler.StartDisabled, Status: handler.ServiceStopped,
				DependsOn: []handler.ServiceName{"LanmanWorkstation"}},
		}
	}
	if o.Shares == nil {
		o.Shares = defaultShares()
	}
	if o.Portals == nil {
		o.Portals = defaultPortals()
	}
	if o.BIOSSerial == "" {
		o.BIOSSerial = "FAKE-0000-0001"
	}
	return o
}

func diskIDs(n uint32) handler.DiskIDs {
	return handler.DiskIDs{Page83: fmt.Sprintf("6002248000000000000000000000%04x", n), SerialNumber: fmt.Sprintf("FAKE-DISK-%d", n)}
}

func diskLocation(n uint32) handler.DiskLocation {
	return handler.DiskLocation{Adapter: "0", Bus: "0", Target: "0", LUN: strconv.FormatUint(uint64(n), 10)}
}
