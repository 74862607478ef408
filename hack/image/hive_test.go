package main

import (
	"encoding/binary"
	"encoding/hex"
	"testing"
)

func word(b []byte, at int) uint32 { return binary.LittleEndian.Uint32(b[at:]) }

func TestAHiveIsWhole(t *testing.T) {
	for _, name := range hives {
		h := hive(name)
		if len(h) != 2*hivePage || string(h[:4]) != "regf" || string(h[hivePage:hivePage+4]) != "hbin" {
			t.Fatalf("%s: %d bytes, %q, %q", name, len(h), h[:4], h[hivePage:hivePage+4])
		}
		if word(h, 4) != word(h, 8) {
			t.Errorf("%s: a write of it was begun and not ended", name)
		}
		var sum uint32
		for at := 0; at < 508; at += 4 {
			sum ^= word(h, at)
		}
		if sum != word(h, 508) || sum == 0 || sum == 0xFFFFFFFF {
			t.Errorf("%s: checksum %x, want %x", name, word(h, 508), sum)
		}
	}
}

// The cells must fill the page to its last byte, or Windows takes the file for damaged.
func TestTheCellsOfAHiveFillItsPage(t *testing.T) {
	bin := hive("SYSTEM")[hivePage:]
	var kinds []string
	at := hiveRoot
	for at < hivePage {
		size := int32(word(bin, at))
		switch {
		case size < 0:
			kinds = append(kinds, string(bin[at+4:at+6]))
			size = -size
		default:
			kinds = append(kinds, "free")
		}
		if size < 8 || size%8 != 0 {
			t.Fatalf("a cell of %d bytes at %#x", size, at)
		}
		at += int(size)
	}
	if at != hivePage || len(kinds) != 3 || kinds[0] != "nk" || kinds[1] != "sk" || kinds[2] != "free" {
		t.Errorf("the cells %q end at %#x", kinds, at)
	}
}

func TestTheRootOfAHiveHasASecurityDescriptor(t *testing.T) {
	bin := hive("SAM")[hivePage:]
	at := int(word(bin, hiveRoot+4+44))
	if string(bin[at+4:at+6]) != "sk" || word(bin, at+8) != uint32(at) || word(bin, at+12) != uint32(at) || word(bin, at+16) != 1 {
		t.Errorf("at %#x: % x", at, bin[at:at+24])
	}
	if got := word(bin, at+20); got != uint32(len(descriptor(ace{2, 0, system}, ace{2, 0, administrators}))) {
		t.Errorf("a descriptor of %d bytes", got)
	}
}

// O:BAG:SYD:P(A;;FA;;;SY), byte by byte.
func TestADescriptorIsWrittenAsWindowsReadsIt(t *testing.T) {
	const want = "01000490" + "14000000" + "24000000" + "00000000" + "30000000" + // header, offsets
		"01020000000000052000000020020000" + // S-1-5-32-544
		"010100000000000512000000" + // S-1-5-18
		"02001c0001000000" + "00001400ff011f00" + "010100000000000512000000"
	if got := hex.EncodeToString(descriptor(ace{0, 0x1F01FF, system})); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
