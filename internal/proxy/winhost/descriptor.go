package winhost

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strings"
)

// Sizes and offsets in a STORAGE_DEVICE_ID_DESCRIPTOR and in the STORAGE_IDENTIFIERs that it holds.
// https://learn.microsoft.com/windows/win32/api/winioctl/ns-winioctl-storage_device_id_descriptor
// https://learn.microsoft.com/windows/win32/api/winioctl/ns-winioctl-storage_identifier
const (
	descriptorHeader = 12 // version, size, number of identifiers
	identifierStart  = 16 // code set, type, size, offset of the next, association
)

const (
	codeSetBinary = 1
	codeSetASCII  = 2

	ofDevice = 0 // the identifier is the device's, not a port's or the target's
)

var errDescriptor = errors.New("malformed device identification")

// page83 returns the first identifier of the device itself: a text as it is, binary as lower-case hexadecimal.
// There may be none. Every number comes from the disk, and is not trusted: anyone may have made the disk.
func page83(descriptor []byte) (string, error) {
	le := binary.LittleEndian
	if len(descriptor) < descriptorHeader {
		return "", errDescriptor
	}
	if size := le.Uint32(descriptor[4:]); uint64(size) < uint64(len(descriptor)) {
		if size < descriptorHeader {
			return "", errDescriptor
		}
		descriptor = descriptor[:size]
	}
	count := le.Uint32(descriptor[8:])
	rest := descriptor[descriptorHeader:]
	for left := count; left > 0; left-- {
		if len(rest) < identifierStart {
			return "", errDescriptor
		}
		set, size, next, of := le.Uint32(rest), int(le.Uint16(rest[8:])), int(le.Uint16(rest[10:])), le.Uint32(rest[12:])
		if identifierStart+size > len(rest) {
			return "", errDescriptor
		}
		if id := rest[identifierStart : identifierStart+size]; of == ofDevice {
			if text, ok := readIdentifier(set, id); ok {
				return text, nil
			}
		}
		// An offset of 0 ends the list; one that does not lead past this identifier would go in a circle.
		if next == 0 || left == 1 {
			return "", nil
		}
		if next < identifierStart+size || next > len(rest) {
			return "", errDescriptor
		}
		rest = rest[next:]
	}
	return "", nil
}

// readIdentifier leaves out what is in neither code, and a text with other than ASCII in it, which could not be sent on.
func readIdentifier(set uint32, id []byte) (string, bool) {
	switch set {
	case codeSetBinary:
		return hex.EncodeToString(id), len(id) > 0
	case codeSetASCII:
		text := strings.TrimRight(string(id), "\x00")
		return text, text != "" && !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
	}
	return "", false
}
