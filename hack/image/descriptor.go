package main

import (
	"bytes"
	"encoding/binary"
)

// Well-known accounts, as revision, number of parts, authority and parts.
// https://learn.microsoft.com/windows/win32/secauthz/well-known-sids
var (
	system         = sid(18)
	administrators = sid(32, 544)
	users          = sid(32, 545)
)

// sid returns S-1-5 with the parts behind it.
func sid(parts ...uint32) []byte {
	out := []byte{1, byte(len(parts)), 0, 0, 0, 0, 0, 5}
	for _, p := range parts {
		out = binary.LittleEndian.AppendUint32(out, p)
	}
	return out
}

// ace allows an account a set of rights; flags say what below the object inherits it.
type ace struct {
	flags   byte
	rights  uint32
	account []byte
}

const inherited = 0x03 // OBJECT_INHERIT_ACE, CONTAINER_INHERIT_ACE

// descriptor returns a self-relative security descriptor that belongs to administrators, is protected against what a
// parent would pass on, and allows what the list says.
// https://learn.microsoft.com/windows/win32/api/winnt/ns-winnt-security_descriptor
func descriptor(list ...ace) []byte {
	var acl bytes.Buffer
	for _, a := range list {
		acl.Write([]byte{0, a.flags}) // ACCESS_ALLOWED_ACE_TYPE
		acl.Write(binary.LittleEndian.AppendUint16(nil, uint16(8+len(a.account))))
		acl.Write(binary.LittleEndian.AppendUint32(nil, a.rights))
		acl.Write(a.account)
	}
	const header = 20
	owner := uint32(header)
	group := owner + uint32(len(administrators))
	dacl := group + uint32(len(system))
	out := []byte{1, 0}
	out = binary.LittleEndian.AppendUint16(out, 0x9004) // SE_DACL_PRESENT, SE_DACL_PROTECTED, SE_SELF_RELATIVE
	for _, offset := range []uint32{owner, group, 0, dacl} {
		out = binary.LittleEndian.AppendUint32(out, offset)
	}
	out = append(append(out, administrators...), system...)
	out = append(out, 2, 0) // ACL_REVISION
	out = binary.LittleEndian.AppendUint16(out, uint16(8+acl.Len()))
	out = binary.LittleEndian.AppendUint16(out, uint16(len(list)))
	return append(append(out, 0, 0), acl.Bytes()...)
}
