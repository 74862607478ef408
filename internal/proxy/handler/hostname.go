package handler

import (
	"net/netip"
	"strings"
)

// maxHostName is the limit of RFC 1035, in bytes.
const maxHostName = 253

// isHostName accepts names of machines as DNS and NetBIOS have them: labels of ASCII letters, digits, - and _. A name whose
// last label is a number is an address to some and a name to others ("127.1", "0x7f000001"), and only accepted
// as an IPv4 address of four numbers.
func isHostName(s string) bool {
	if s == "" || len(s) > maxHostName {
		return false
	}
	labels := strings.Split(s, ".")
	for _, label := range labels {
		if !isLabel(label) || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
	}
	if last := labels[len(labels)-1]; isNumber(last) {
		address, err := netip.ParseAddr(s)
		return err == nil && address.Is4() && isOfAMachine(address)
	}
	return true
}

// isServer is isHostName with IPv6 addresses as UNC paths write them, 2001-db8--1.ipv6-literal.net.
func isServer(s string) bool {
	if literal, ok := strings.CutSuffix(strings.ToLower(s), ".ipv6-literal.net"); ok {
		address, err := netip.ParseAddr(strings.ReplaceAll(literal, "-", ":"))
		return err == nil && address.Is6() && !strings.Contains(literal, ":") && isOfAMachine(address)
	}
	return isHostName(s)
}

// isOfAMachine is false of addresses that name none, or many.
func isOfAMachine(a netip.Addr) bool {
	return a.Zone() == "" && !a.IsUnspecified() && !a.IsMulticast() && a != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

// isLabel accepts ASCII letters, digits, - and _.
func isLabel(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < '0' || r > '9') && (r|0x20 < 'a' || r|0x20 > 'z') && r != '-' && r != '_'
	})
}

// isNumber accepts decimal and hexadecimal numbers.
func isNumber(label string) bool {
	if digits, isHex := strings.CutPrefix(strings.ToLower(label), "0x"); isHex {
		return isHexText(digits)
	}
	return strings.Trim(label, "0123456789") == ""
}
