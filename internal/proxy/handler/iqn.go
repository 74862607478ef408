package handler

import "strings"

// IQN is the name of an iSCSI target. Only [ParseIQN] should make one. Case is kept, for targets are found by the name
// that the portal gave; it does not distinguish targets.
type IQN string

// maxIQN is the limit of RFC 7143, section 4.2.7.1, in bytes.
const maxIQN = 223

// ParseIQN accepts names of the three types of RFC 7143, section 4.2.7: iqn.yyyy-mm.authority, with :more behind it or
// not, eui. with 16 hexadecimal digits, and naa. with 16 or 32. Only printable ASCII characters may be in them, and
// none that could end a text in a query.
func ParseIQN(s string) (IQN, error) {
	switch {
	case s == "":
		return "", invalid("iqn is empty")
	case len(s) > maxIQN:
		return "", invalid("iqn %s is longer than %d bytes", quoted(s), maxIQN)
	}
	for _, r := range s {
		if r <= ' ' || r > '~' || strings.ContainsRune("\\'\"`", r) {
			return "", invalid("iqn %s contains invalid characters (%U)", quoted(s), r)
		}
	}
	if !isIQN(s) {
		return "", invalid("iqn %s is not of the form iqn.yyyy-mm.authority:name, eui.number or naa.number", quoted(s))
	}
	return IQN(s), nil
}

func isIQN(s string) bool {
	if len(s) < len("iqn.") {
		return false
	}
	name := s[len("iqn."):]
	switch strings.ToLower(s[:len("iqn.")]) {
	case "iqn.":
		return isDated(name)
	case "eui.":
		return len(name) == 16 && isHexText(name)
	case "naa.":
		return (len(name) == 16 || len(name) == 32) && isHexText(name)
	}
	return false
}

// isDated accepts yyyy-mm.authority, and what the authority has put behind a colon.
func isDated(s string) bool {
	const form = "yyyy-mm."
	if len(s) <= len(form) || s[4] != '-' || s[7] != '.' {
		return false
	}
	year, month := s[:4], s[5:7]
	if strings.Trim(year, "0123456789") != "" || month < "01" || month > "12" || strings.Trim(month, "0123456789") != "" {
		return false
	}
	authority, _, _ := strings.Cut(s[len(form):], ":")
	for label := range strings.SplitSeq(authority, ".") {
		if !isLabel(label) {
			return false
		}
	}
	return true
}

func isHexText(s string) bool { return strings.Trim(s, "0123456789abcdefABCDEF") == "" }
