package pipe

import (
	"errors"
	"fmt"
	"strings"
)

// clientRights let a client read and write, and not create an instance (0x4): see DefaultSDDL. Nothing wider is ever added.
const clientRights = "0x12019b"

// Descriptor returns the security descriptor of one pipe: base, or DefaultSDDL if it is empty, with the rights of a client for
// each account. They stand last in the list, so what base denies stays denied. A base without a list of who may open the
// pipe is refused, because Windows then lets every account in; so is an account that CheckAccount refuses.
func Descriptor(base string, accounts []string) (string, error) {
	if base == "" {
		base = DefaultSDDL
	}
	end, err := endOfList(base)
	if err != nil {
		return "", fmt.Errorf("security descriptor %q: %w", base, err)
	}
	var grants strings.Builder
	for _, account := range accounts {
		if err := CheckAccount(account); err != nil {
			return "", err
		}
		grants.WriteString("(A;;" + clientRights + ";;;" + account + ")")
	}
	if grants.Len() > 0 && strings.Contains(base, `"`) { // the texts of conditions may hold anything, brackets too
		return "", fmt.Errorf("security descriptor %q has a condition: write the further accounts into it by hand", base)
	}
	return base[:end] + grants.String() + base[end:], nil
}

// endOfList is where the list of who may open the pipe ends: at the end of the text, or where the list for audits begins.
func endOfList(sddl string) (end int, err error) {
	end, depth, list := len(sddl), 0, -1
	for i := range len(sddl) {
		switch c := sddl[i]; {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c != ':' || depth > 0 || i == 0:
		case sddl[i-1] == 'D':
			list = i + 1
		case sddl[i-1] == 'S':
			end = i - 1
		}
	}
	if list < 0 {
		return 0, errors.New("has no list (D:) of the accounts that may open the pipe, so that every account could")
	}
	if list > end {
		return 0, errors.New("has its list (D:) behind that for audits (S:): write it first")
	}
	if flags, _, _ := strings.Cut(sddl[list:end], "("); strings.Contains(strings.ToUpper(flags), "NO_ACCESS_CONTROL") {
		return 0, errors.New("lets every account open the pipe")
	}
	return end, nil
}
