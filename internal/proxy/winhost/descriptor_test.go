package winhost

import (
	"bytes"
	"encoding/binary"
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/internal/proxy/handler"
)

// fakeDrivers answer for the disks at these paths. The descriptors are hand-made.
type fakeDrivers map[string]struct {
	number     uint32
	descriptor []byte
	err        error
}

func (f fakeDrivers) Describe(path string) (uint32, []byte, error) {
	a, is := f[path]
	if !is {
		return 0, nil, fs.ErrNotExist
	}
	return a.number, a.descriptor, a.err
}

type identifier struct {
	set, of uint32
	id      []byte
}

// descriptor builds a STORAGE_DEVICE_ID_DESCRIPTOR.
func descriptor(ids ...identifier) []byte {
	le := binary.LittleEndian
	var list []byte
	for _, i := range ids {
		next := (identifierStart + len(i.id) + 3) &^ 3
		b := le.AppendUint32(nil, i.set)
		b = le.AppendUint32(b, 3) // type
		b = le.AppendUint16(b, uint16(len(i.id)))
		b = le.AppendUint16(b, uint16(next))
		b = le.AppendUint32(b, i.of)
		b = append(b, i.id...)
		list = append(list, append(b, make([]byte, next-len(b))...)...)
	}
	b := le.AppendUint32(nil, 12)
	b = le.AppendUint32(b, uint32(descriptorHeader+len(list)))
	b = le.AppendUint32(b, uint32(len(ids)))
	return append(b, list...)
}

func TestPage83IsTheFirstIdentifierOfTheDevice(t *testing.T) {
	text, other := identifier{codeSetASCII, ofDevice, []byte("vol-0123")}, identifier{codeSetASCII, ofDevice, []byte("later")}
	tests := []struct {
		name string
		b    []byte
		want string
	}{
		{"a text", descriptor(text), "vol-0123"},
		{"a text with zeros at its end", descriptor(identifier{codeSetASCII, ofDevice, []byte("abc\x00\x00")}), "abc"},
		{"binary", descriptor(identifier{codeSetBinary, ofDevice, []byte{0x60, 0x02, 0xAB}}), "6002ab"},
		{"several", descriptor(text, other), "vol-0123"},
		{"a port's before it", descriptor(identifier{codeSetASCII, 1, []byte("port")}, text), "vol-0123"},
		{"UTF-8 before it", descriptor(identifier{3, ofDevice, []byte("ä")}, text), "vol-0123"},
		{"a text that is none before it", descriptor(identifier{codeSetASCII, ofDevice, []byte{0xff, 0xfe}}, text), "vol-0123"},
		{"an empty one before it", descriptor(identifier{codeSetBinary, ofDevice, nil}, text), "vol-0123"},
		{"none", descriptor(), ""},
		{"only a target's", descriptor(identifier{codeSetBinary, 2, []byte{1}}), ""},
		{"room after the end", append(descriptor(text), make([]byte, 100)...), "vol-0123"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got, err := page83(test.b); err != nil || got != test.want {
				t.Errorf("got %q, %v; want %q", got, err, test.want)
			}
		})
	}
}

func TestPage83RefusesWhatIsMalformed(t *testing.T) {
	port := identifier{codeSetASCII, 1, []byte("port")}
	good := descriptor(port, identifier{codeSetASCII, ofDevice, []byte("vol-0123")})
	poke16 := func(offset int, value uint16) []byte {
		b := bytes.Clone(good)
		binary.LittleEndian.PutUint16(b[offset:], value)
		return b
	}
	poke32 := func(offset int, value uint32) []byte {
		b := bytes.Clone(good)
		binary.LittleEndian.PutUint32(b[offset:], value)
		return b
	}
	tests := map[string][]byte{
		"nothing":                              nil,
		"half a header":                        good[:8],
		"a size smaller than the header":       poke32(4, 3),
		"a size that cuts the first off":       poke32(4, descriptorHeader+8),
		"a count of many":                      poke32(8, 0xffffffff),
		"a header without what it counts":      good[:descriptorHeader],
		"an identifier that is cut off":        good[:len(good)-3],
		"an identifier past the end":           poke16(descriptorHeader+8, 0xffff),
		"a next one past the end":              poke16(descriptorHeader+10, 0xffff),
		"a next one in the middle of this one": poke16(descriptorHeader+10, 4),
		"a next one at the very end":           poke16(descriptorHeader+10, uint16(len(good)-descriptorHeader)),
	}
	for name, b := range tests {
		t.Run(name, func(t *testing.T) {
			if got, err := page83(b); err == nil && name != "a count of many" || got == "port" {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func FuzzPage83(f *testing.F) {
	f.Add(descriptor(identifier{codeSetASCII, ofDevice, []byte("vol-0123")}))
	f.Add(descriptor(identifier{codeSetBinary, 1, []byte{1, 2}}, identifier{codeSetBinary, ofDevice, []byte{3}}))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		id, err := page83(b)
		if err != nil && id != "" {
			t.Errorf("an error came with %q", id)
		}
		for _, r := range id {
			if r < ' ' || r > '~' {
				t.Errorf("%q cannot be sent on", id)
			}
		}
	})
}

func TestParseLocation(t *testing.T) {
	tests := []struct {
		text string
		want handler.DiskLocation
		ok   bool
	}{
		{"PCI Slot 3 : Adapter 0 : Port 0 : Target 1 : LUN 2", handler.DiskLocation{Adapter: "0", Target: "1", LUN: "2"}, true},
		{"Integrated : Bus 0 : Device 63667 : Function 29428 : Adapter 1 : Port 0 : Target 0 : LUN 5", handler.DiskLocation{Bus: "0", Adapter: "1", Target: "0", LUN: "5"}, true},
		{"Adapter 0:Port 0:Target 1:LUN 2:x", handler.DiskLocation{Adapter: "0", Target: "1", LUN: "2"}, true},
		{"", handler.DiskLocation{}, false},
		{"Adapter 0 : Port 0 : Target 1 : LUN 2", handler.DiskLocation{}, false},
		{"a : b : c : d : e", handler.DiskLocation{}, false},
		{"PCI Slot 3 : Adapter x : Port 0 : Target 1 : LUN 2", handler.DiskLocation{}, false},
		{"PCI Slot 3 : Adapter -1 : Port 0 : Target 1 : LUN 2", handler.DiskLocation{}, false},
		{"PCI Slot 3 : Adapter 0 : Adapter 1 : Target 1 : LUN 2", handler.DiskLocation{}, false},
		{"PCI Slot 3 : adapter 0 : port 0 : target 1 : lun 2", handler.DiskLocation{}, false},
		{"PCI Slot 3 : Adapter 0 1 : Port 0 : Target : LUN", handler.DiskLocation{}, false},
	}
	for _, test := range tests {
		got, ok := parseLocation(test.text)
		if ok != test.ok || ok && got != test.want {
			t.Errorf("%q: got %+v, %t", test.text, got, ok)
		}
	}
}

func TestListDiskLocationsLeavesOutWhatTheHostCannotTell(t *testing.T) {
	d, f := newDisks(t)
	f.set("disk0", "Location", nil)
	f.set("disk2", "Location", "Integrated")
	got, err := d.ListDiskLocations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[uint32]handler.DiskLocation{1: {Adapter: "0", Target: "1", LUN: "1"}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, value := range []any{nil, "4294967296", "x", missing} {
		f.set("disk1", "Number", value)
		if got, err := d.ListDiskLocations(t.Context()); err == nil {
			t.Errorf("number %v: got %v", value, got)
		}
	}
}
