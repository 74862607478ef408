package main

import (
	"encoding/binary"
	"fmt"
)

// hives are the registry files that Windows looks for in a base layer before it takes it. HostProcess containers use the
// registry of their node and never these, but Windows Server 2025 refuses files that are no hives.
var hives = []string{"DEFAULT", "SAM", "SECURITY", "SOFTWARE", "SYSTEM"}

const (
	hivePage = 0x1000
	hiveRoot = 0x20 // of the root's cell, from the end of the first page; so are all offsets in cells
	noCell   = 0xFFFFFFFF
)

// hive returns a registry file with a root key that has neither values nor keys below it: a page that describes the file,
// and one with three cells, for the key, for its security descriptor and for what is free.
// The format is written up in https://github.com/msuhanov/regf.
func hive(name string) []byte {
	key := hiveKey("PIPEGUARD_" + name)
	security := hiveSecurity(uint32(hiveRoot + len(key)))
	binary.LittleEndian.PutUint32(key[4+44:], uint32(hiveRoot+len(key)))

	out := make([]byte, 2*hivePage)
	copy(out, "regf")
	for offset, value := range map[int]uint32{
		4: 1, 8: 1, // begun and ended the same number of times: the file is whole
		20: 1, 24: 3, // version 1.3
		32: 1, // loaded directly
		36: hiveRoot,
		40: hivePage, // what follows this page
		44: 1,
	} {
		binary.LittleEndian.PutUint32(out[offset:], value)
	}
	var sum uint32
	for offset := 0; offset < 508; offset += 4 {
		sum ^= binary.LittleEndian.Uint32(out[offset:])
	}
	binary.LittleEndian.PutUint32(out[508:], sum)

	bin := out[hivePage:]
	copy(bin, "hbin")
	binary.LittleEndian.PutUint32(bin[8:], hivePage)
	at := hiveRoot + copy(bin[hiveRoot:], key)
	at += copy(bin[at:], security)
	binary.LittleEndian.PutUint32(bin[at:], uint32(hivePage-at)) // a positive size: free
	return out
}

// hiveCell makes a cell in use: its size, negative, and its content, filled up to a multiple of eight bytes.
func hiveCell(content []byte) []byte {
	size := (4 + len(content) + 7) &^ 7
	out := make([]byte, size)
	binary.LittleEndian.PutUint32(out, uint32(-int32(size))) // #nosec G115 -- a few hundred bytes
	copy(out[4:], content)
	return out
}

// hiveKey is the cell of the root key. The offset of its security is left to the caller.
func hiveKey(name string) []byte {
	const named = 76
	content := make([]byte, named+len(name))
	copy(content, "nk")
	binary.LittleEndian.PutUint16(content[2:], 0x2C) // KEY_HIVE_ENTRY, KEY_NO_DELETE, KEY_COMP_NAME
	for _, offset := range []int{28, 32, 40, 48} {   // keys, volatile keys, values, class
		binary.LittleEndian.PutUint32(content[offset:], noCell)
	}
	binary.LittleEndian.PutUint16(content[72:], uint16(len(name))) // #nosec G115 -- five short names
	copy(content[named:], name)
	return hiveCell(content)
}

// hiveSecurity is the cell of a security descriptor that lies at an offset and is used once. It is a list of its own, so
// its neighbours are itself.
func hiveSecurity(offset uint32) []byte {
	const full = 0xF003F // KEY_ALL_ACCESS
	sd := descriptor(ace{inherited &^ 1, full, system}, ace{inherited &^ 1, full, administrators})
	content := []byte{'s', 'k', 0, 0}
	for _, value := range []uint32{offset, offset, 1, uint32(len(sd))} {
		content = binary.LittleEndian.AppendUint32(content, value)
	}
	return hiveCell(append(content, sd...))
}

// hivePath is where in a layer a hive lies.
func hivePath(name string) string { return fmt.Sprintf("Files/Windows/System32/config/%s", name) }
