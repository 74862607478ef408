package pipe

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ContainerUser is the account of every process-isolated container whose image or pod names no other, of whatever pod.
const ContainerUser = "S-1-5-93-2-2"

// MaxAccounts bounds the accounts that are added to one pipe. A descriptor has room for some two thousand.
const MaxAccounts = 64

// CheckAccount accepts the SIDs of accounts that may be added to a pipe: those of one user, one group, one service or one kind
// of container. SIDs of all accounts that have logged on in some way are refused, such as Everyone, NETWORK and Users, and so are
// unknown ones. The text must be the one that Windows prints, so that there is one spelling of each.
// https://learn.microsoft.com/windows/win32/secauthz/well-known-sids
func CheckAccount(sid string) error {
	parts, ok := cutSID(sid)
	if !ok {
		return fmt.Errorf("account %q: want a SID such as S-1-5-93-2-2 in the spelling of Windows: no names, zeros in front or hexadecimal digits", sid)
	}
	if why, known := broad[sid]; known {
		return fmt.Errorf("account %s is %s", sid, why)
	}
	is := func(begin ...uint64) bool { return len(parts) > len(begin) && slices.Equal(parts[:len(begin)], begin) }
	switch {
	case sid == "S-1-5-19", sid == "S-1-5-20": // LOCAL SERVICE and NETWORK SERVICE
	case sid == "S-1-5-93-2-1", sid == ContainerUser:
	case is(5, 21) && len(parts) == 6: // an account or group of a machine or domain
		return checkRelative(sid, parts[5])
	case is(5, 80) && len(parts) == 7: // a service
	case is(12, 1) && len(parts) == 6: // an account or group of Entra ID
	default:
		return fmt.Errorf("account %s: want one user, group, service, ContainerUser (%s) or ContainerAdministrator (S-1-5-93-2-1); "+
			"groups of all accounts that have logged on, and unknown SIDs, are not added to a pipe", sid, ContainerUser)
	}
	return nil
}

// broad names the SIDs that are refused most often. Others are refused as well unless they are known to be narrow.
var broad = map[string]string{
	"S-1-1-0":      "Everyone",
	"S-1-2-0":      "LOCAL, every account that has logged on here",
	"S-1-5-2":      "NETWORK, every account that has logged on over the network",
	"S-1-5-4":      "INTERACTIVE, every account that has logged on here",
	"S-1-5-6":      "SERVICE, every service",
	"S-1-5-7":      "ANONYMOUS",
	"S-1-5-11":     "Authenticated Users",
	"S-1-5-18":     "SYSTEM, which may open every pipe already",
	"S-1-5-32-544": "Administrators, who may open every pipe already",
	"S-1-5-32-545": "Users",
	"S-1-5-32-546": "Guests",
	"S-1-5-80-0":   "ALL SERVICES",
}

// checkRelative refuses the groups that every domain has for all its accounts, and the guest.
func checkRelative(sid string, rid uint64) error {
	for id, name := range map[uint64]string{501: "Guest", 513: "Domain Users", 514: "Domain Guests", 515: "Domain Computers"} {
		if rid == id {
			return fmt.Errorf("account %s is %s", sid, name)
		}
	}
	return nil
}

// cutSID returns the numbers behind S-1-: the authority and at most 15 more.
func cutSID(sid string) (parts []uint64, ok bool) {
	rest, ok := strings.CutPrefix(sid, "S-1-")
	if !ok || len(sid) > 184 { // the longest SID
		return nil, false
	}
	for text := range strings.SplitSeq(rest, "-") {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil || strconv.FormatUint(n, 10) != text {
			return nil, false
		}
		parts = append(parts, n)
	}
	return parts, len(parts) >= 2 && len(parts) <= 16
}
