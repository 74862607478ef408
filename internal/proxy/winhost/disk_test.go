package winhost

import (
	"context"
	"errors"
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/pipeguard/pipeguard/internal/proxy/handler"
	"github.com/pipeguard/pipeguard/internal/proxy/wmi"
)

// system and data are the hand-made disks of a node: 0 with Windows on it, 1 with data, 2 raw.
func newDisks(t *testing.T) (disks, *fakeWMI) {
	t.Helper()
	f := newFakeWMI(t)
	disk := func(path, number string, style uint64, system bool) wmi.Instance {
		return row(path, properties{
			"Number": number, "PartitionStyle": style, "IsSystem": system, "IsBoot": system, "IsOffline": false,
			"Size": "107374182400", "Path": `\\?\` + path, "SerialNumber": "S" + number,
			"Location": "PCI Slot 3 : Adapter 0 : Port 0 : Target 1 : LUN " + number,
		})
	}
	f.classes["MSFT_Disk"] = []wmi.Instance{disk("disk0", "0", 2, true), disk("disk1", "1", 2, false), disk("disk2", "2", 0, false)}
	f.classes["MSFT_Partition"] = []wmi.Instance{
		row("reserved1", properties{"DiskNumber": uint64(1), "PartitionNumber": uint64(1), "GptType": gptReserved}),
		row("data1", properties{"DiskNumber": uint64(1), "PartitionNumber": uint64(2), "GptType": gptData}),
	}
	f.changes["MSFT_Disk.CreatePartition"] = func(wmi.Call) {
		f.classes["MSFT_Partition"] = append(f.classes["MSFT_Partition"],
			row("reserved2", properties{"DiskNumber": uint64(2), "PartitionNumber": uint64(1), "GptType": gptReserved}),
			row("data2", properties{"DiskNumber": uint64(2), "PartitionNumber": uint64(2), "GptType": gptData}))
	}
	return disks{asked{WMI: f}, fakeDrivers{}, zap.NewNop()}, f
}

var permitted = handler.Permits{SystemDisk: true}

const partitioned = "MSFT_Disk.CreatePartition disk2 [AssignDriveLetter:false GptType:" + gptData + " IsActive:false IsHidden:false UseMaximumSize:true]"

func TestPartitionDiskMakesOnePartitionOfARawDisk(t *testing.T) {
	for name, codes := range map[string]map[string]uint32{
		"all goes well":                      {},
		"somebody else initialises it first": {"MSFT_Disk.Initialize": diskInitialized},
		"it shows without being refreshed":   {"MSFT_Disk.Refresh": 4},
	} {
		t.Run(name, func(t *testing.T) {
			d, f := newDisks(t)
			for method, code := range codes {
				f.says(method, code)
			}
			wants(t, d.PartitionDisk(t.Context(), 2, handler.Permits{}), nil)
			f.wantCalls("MSFT_Disk.Initialize disk2 [PartitionStyle:2]", partitioned, "MSFT_Disk.Refresh disk2", "MSFT_Partition.Online data2")
		})
	}
}

func TestPartitionDiskTakesAPartitionWhoseAccessPathIsInUse(t *testing.T) {
	d, f := newDisks(t)
	f.answers["MSFT_Disk.CreatePartition"] = func() answer {
		f.changes["MSFT_Disk.CreatePartition"](wmi.Call{})
		return answer{code: accessPathInUse}
	}
	wants(t, d.PartitionDisk(t.Context(), 2, handler.Permits{}), nil)
}

func TestPartitionDiskOnlyBringsAPartitionThatIsThereOnline(t *testing.T) {
	d, f := newDisks(t)
	wants(t, d.PartitionDisk(t.Context(), 1, handler.Permits{}), nil)
	f.set("data1", "GptType", nil) // as on an MBR disk
	wants(t, d.PartitionDisk(t.Context(), 1, handler.Permits{}), nil)
	f.wantCalls("MSFT_Partition.Online data1", "MSFT_Partition.Online data1")
}

func TestPartitionDiskPartitionsAnEmptyMBRDiskAsSuch(t *testing.T) {
	d, f := newDisks(t)
	f.set("disk2", "PartitionStyle", uint64(styleMBR))
	wants(t, d.PartitionDisk(t.Context(), 2, handler.Permits{}), nil)
	if want := "MSFT_Disk.CreatePartition disk2 [AssignDriveLetter:false IsActive:false IsHidden:false MbrType:7 UseMaximumSize:true]"; f.calls[0] != want {
		t.Errorf("got %s", f.calls[0])
	}
}

func TestDisksThatTheHostRunsFromAreNotChanged(t *testing.T) {
	acts := map[string]func(disks, context.Context, handler.Permits) error{
		"PartitionDisk": func(d disks, ctx context.Context, p handler.Permits) error { return d.PartitionDisk(ctx, 0, p) },
		"SetDiskOnline": func(d disks, ctx context.Context, p handler.Permits) error { return d.SetDiskOnline(ctx, 0, false, p) },
		"the same, to the state that it has": func(d disks, ctx context.Context, p handler.Permits) error {
			return d.SetDiskOnline(ctx, 0, true, p)
		},
	}
	states := map[string]properties{
		"a system and boot disk":                {},
		"a system disk":                         {"IsBoot": false},
		"a boot disk":                           {"IsSystem": false},
		"a disk that does not say IsSystem":     {"IsSystem": nil, "IsBoot": false},
		"a disk that does not say IsBoot":       {"IsSystem": false, "IsBoot": nil},
		"a disk without IsSystem":               {"IsSystem": missing, "IsBoot": false},
		"a disk without IsBoot":                 {"IsSystem": false, "IsBoot": missing},
		"a disk that says it in another type":   {"IsSystem": "false", "IsBoot": false},
		"a disk that says it in another type 2": {"IsSystem": false, "IsBoot": uint64(0)},
	}
	for name, act := range acts {
		for state, changes := range states {
			t.Run(name+" of "+state, func(t *testing.T) {
				d, f := newDisks(t)
				for property, value := range changes {
					f.set("disk0", property, value)
				}
				wants(t, act(d, t.Context(), handler.Permits{}), fs.ErrPermission, "disk 0")
				wants(t, act(d, t.Context(), handler.Permits{Reformat: true}), fs.ErrPermission)
				f.wantCalls()
			})
		}
	}
	d, f := newDisks(t)
	wants(t, d.SetDiskOnline(t.Context(), 0, false, permitted), nil)
	f.wantCalls("MSFT_Disk.Offline disk0")
}

func TestPartitionDiskFailsAtEveryStep(t *testing.T) {
	lost := errors.New("lost")
	tests := []struct {
		name  string
		spoil func(f *fakeWMI)
		kind  error
		says  string
	}{
		{"the disk is not there", func(f *fakeWMI) { f.classes["MSFT_Disk"] = nil }, fs.ErrNotExist, "failed to query disk 2. error: not found"},
		{"the disk is there twice", func(f *fakeWMI) { f.classes["MSFT_Disk"] = append(f.classes["MSFT_Disk"], f.classes["MSFT_Disk"][2]) }, nil, "2 instances"},
		{"the disks cannot be read", func(f *fakeWMI) { f.fails["MSFT_Disk"] = lost }, lost, "failed to query disk 2. error: lost"},
		{"the disk has no style", func(f *fakeWMI) { f.set("disk2", "PartitionStyle", nil) }, nil, "PartitionStyle"},
		{"its style is a text", func(f *fakeWMI) { f.set("disk2", "PartitionStyle", "raw") }, nil, "PartitionStyle"},
		{"it is offline", func(f *fakeWMI) { f.says("MSFT_Disk.Initialize", 41003) }, handler.ErrPrecondition, "WMI MSFT_Disk.Initialize failed (target=disk 2): code=41003"},
		{"it is read only", func(f *fakeWMI) { f.says("MSFT_Disk.Initialize", 41002) }, handler.ErrPrecondition, "code=41002"},
		{"it is critical", func(f *fakeWMI) { f.says("MSFT_Disk.Initialize", 41009) }, fs.ErrPermission, "code=41009"},
		{"initialising is denied", func(f *fakeWMI) { f.says("MSFT_Disk.Initialize", 40001) }, fs.ErrPermission, "code=40001"},
		{"the method is not there", func(f *fakeWMI) {
			f.fails["MSFT_Disk.Initialize"] = &wmi.Error{Op: "call", What: "x", Code: 0x8004102E}
		}, errors.ErrUnsupported, "code=2147749934"},
		{"the partitions cannot be read", func(f *fakeWMI) { f.fails["MSFT_Partition"] = lost }, lost, "the partitions of disk 2"},
		{"there is no room", func(f *fakeWMI) { f.says("MSFT_Disk.CreatePartition", 40000) }, handler.ErrPrecondition, "code=40000"},
		{"a number that nobody knows", func(f *fakeWMI) { f.says("MSFT_Disk.CreatePartition", 54321) }, nil, "code=54321"},
		{"a job was started", func(f *fakeWMI) { f.says("MSFT_Disk.CreatePartition", 4096) }, nil, "code=4096"},
		{"no partition shows since Refresh fails", func(f *fakeWMI) {
			f.says("MSFT_Disk.Refresh", 4)
			delete(f.changes, "MSFT_Disk.CreatePartition")
		}, nil, "is not there"},
		{"no partition comes of it", func(f *fakeWMI) { delete(f.changes, "MSFT_Disk.CreatePartition") }, nil, "is not there"},
		{"the partition stays offline", func(f *fakeWMI) { f.says("MSFT_Partition.Online", 3) }, context.DeadlineExceeded, "code=3"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d, f := newDisks(t)
			test.spoil(f)
			err := d.PartitionDisk(t.Context(), 2, handler.Permits{})
			if err == nil {
				t.Fatal("it was done")
			}
			if test.kind == nil {
				test.kind = err
			}
			wants(t, err, test.kind, test.says)
		})
	}
}

func TestAnAnswerAboutAnotherDiskIsRefused(t *testing.T) {
	d, f := newDisks(t)
	for _, value := range []any{"1", nil, missing} {
		lying := liar{f, func(r wmi.Instance) wmi.Instance {
			p := properties{}
			for k, v := range r.Properties {
				p[k] = v
			}
			if p["Number"] = value; value == missing {
				delete(p, "Number")
			}
			return row(r.Path, p)
		}}
		d.asked = asked{WMI: lying}
		if err := d.PartitionDisk(t.Context(), 2, permitted); err == nil {
			t.Errorf("Number %v was taken for 2", value)
		}
	}
	f.wantCalls()
}

// liar changes what is read.
type liar struct {
	*fakeWMI
	change func(wmi.Instance) wmi.Instance
}

func (l liar) Query(ctx context.Context, q wmi.Query) ([]wmi.Instance, error) {
	found, err := l.fakeWMI.Query(ctx, q)
	for i := range found {
		found[i] = l.change(found[i])
	}
	return found, err
}

func TestDiskStateIsReadAndSet(t *testing.T) {
	d, f := newDisks(t)
	f.set("disk1", "IsOffline", true)
	for disk, want := range map[uint32]bool{1: false, 2: true} {
		if online, err := d.IsDiskOnline(t.Context(), disk); err != nil || online != want {
			t.Errorf("disk %d: got %t, %v", disk, online, err)
		}
		wants(t, d.SetDiskOnline(t.Context(), disk, want, handler.Permits{}), nil) // is so already
	}
	f.wantCalls()
	wants(t, d.SetDiskOnline(t.Context(), 1, true, handler.Permits{}), nil)
	wants(t, d.SetDiskOnline(t.Context(), 2, false, handler.Permits{}), nil)
	f.wantCalls("MSFT_Disk.Online disk1", "MSFT_Disk.Offline disk2")
	f.says("MSFT_Disk.Online", 6)
	wants(t, d.SetDiskOnline(t.Context(), 1, true, handler.Permits{}), handler.ErrPrecondition, "MSFT_Disk.Online", "disk 1", "code=6")
	for _, value := range []any{nil, missing, "no", uint64(0)} {
		f.set("disk1", "IsOffline", value)
		if _, err := d.IsDiskOnline(t.Context(), 1); err == nil {
			t.Errorf("IsOffline %v is taken for an answer", value)
		}
		if err := d.SetDiskOnline(t.Context(), 1, true, permitted); err == nil {
			t.Errorf("IsOffline %v is taken for a state", value)
		}
	}
}

func TestDiskSizeIsInBytes(t *testing.T) {
	d, f := newDisks(t)
	if size, err := d.DiskSize(t.Context(), 1); err != nil || size != 100<<30 {
		t.Errorf("got %d, %v", size, err)
	}
	for _, value := range []any{nil, missing, "much", "-1", "9223372036854775808", true} {
		f.set("disk1", "Size", value)
		if size, err := d.DiskSize(t.Context(), 1); err == nil {
			t.Errorf("size %v is taken for %d", value, size)
		}
	}
	_, err := d.DiskSize(t.Context(), 9)
	wants(t, err, fs.ErrNotExist, "failed to query disk 9. error: not found")
}

func TestRescanUpdatesTheStorageCache(t *testing.T) {
	d, f := newDisks(t)
	wants(t, d.Rescan(t.Context()), nil)
	f.wantCalls("MSFT_StorageSetting.UpdateHostStorageCache")
	f.says("MSFT_StorageSetting.UpdateHostStorageCache", 40001)
	wants(t, d.Rescan(t.Context()), fs.ErrPermission, "code=40001")
}

func TestListDiskIDsLeavesNothingOut(t *testing.T) {
	d, f := newDisks(t)
	core, logged := observer.New(zap.WarnLevel)
	d.log = zap.New(core)
	d.devices = fakeDrivers{
		`\\?\disk0`: {0, descriptor(identifier{codeSetASCII, ofDevice, []byte("NAA 1")}), nil},
		`\\?\disk1`: {7, descriptor(identifier{codeSetASCII, ofDevice, []byte("of another disk")}), nil},
	}
	f.set("disk1", "SerialNumber", nil)
	got, err := d.ListDiskIDs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := map[uint32]handler.DiskIDs{0: {Page83: "NAA 1", SerialNumber: "S0"}, 1: {}, 2: {SerialNumber: "S2"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if logged.Len() != 2 {
		t.Errorf("%d lines in the log, want one for each disk that did not answer", logged.Len())
	}
	f.set("disk1", "Number", "4294967296") // as a number of 32 bits it would be disk 0
	if ids, err := d.ListDiskIDs(t.Context()); err == nil {
		t.Errorf("got %v", ids)
	}
}

func TestNothingIsAskedForAnEndedContext(t *testing.T) {
	d, f := newDisks(t)
	ctx := ended(t)
	_, locations := d.ListDiskLocations(ctx)
	_, ids := d.ListDiskIDs(ctx)
	_, size := d.DiskSize(ctx, 1)
	_, online := d.IsDiskOnline(ctx, 1)
	for _, err := range []error{
		locations, ids, size, online, d.PartitionDisk(ctx, 2, permitted), d.SetDiskOnline(ctx, 1, false, permitted), d.Rescan(ctx),
	} {
		wants(t, err, context.Canceled)
	}
	f.wantCalls()
}
