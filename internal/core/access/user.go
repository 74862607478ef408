package access

import (
	"fmt"
	"strings"
)

// foldUser makes one spelling of a SID; uid:N has only one.
func foldUser(user string) string {
	if strings.HasPrefix(user, "s-") {
		return "S" + user[1:]
	}
	return user
}

// ParseUser accepts S-1-… as Microsoft's "SID string format" has it, and uid:N. It returns the one spelling by which users are compared.
func ParseUser(text string) (string, error) {
	user := foldUser(text)
	return user, checkUser(user)
}

func checkUser(user string) error {
	if n, ok := strings.CutPrefix(user, "uid:"); ok {
		if !isNumber(n) {
			return fmt.Errorf("user %q: want uid: and a decimal number", user)
		}
		return nil
	}
	rest, ok := strings.CutPrefix(user, "S-1-")
	parts := strings.Split(rest, "-")
	if !ok || len(parts) < 2 || len(parts) > 16 {
		return fmt.Errorf("user %q: want a SID (S-1-5-18) or uid:N", user)
	}
	for _, part := range parts {
		if !isNumber(part) {
			return fmt.Errorf("user %q: %q is not a number", user, part)
		}
	}
	return nil
}

// isNumber accepts the one decimal spelling that systems print: no sign, no leading zero.
func isNumber(s string) bool {
	return s != "" && len(s) <= 15 && (s == "0" || s[0] != '0') && strings.Trim(s, "0123456789") == ""
}
