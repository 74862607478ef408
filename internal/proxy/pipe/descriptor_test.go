package pipe

import (
	"strconv"
	"strings"
	"testing"
)

func TestFurtherAccountsComeBehindEveryDenial(t *testing.T) {
	const user, service = "S-1-5-93-2-2", "S-1-5-80-1-2-3-4-5"
	tests := []struct {
		name, base string
		accounts   []string
		want       string
	}{
		{"nothing is added", "", nil, DefaultSDDL},
		{"one", "", []string{user}, DefaultSDDL + "(A;;0x12019b;;;S-1-5-93-2-2)"},
		{"two", "", []string{user, service}, DefaultSDDL + "(A;;0x12019b;;;S-1-5-93-2-2)(A;;0x12019b;;;S-1-5-80-1-2-3-4-5)"},
		{"a base of its own", "D:P(A;;FA;;;BA)", []string{user}, "D:P(A;;FA;;;BA)(A;;0x12019b;;;S-1-5-93-2-2)"},
		{"a base that lets nobody in", "D:P", []string{user}, "D:P(A;;0x12019b;;;S-1-5-93-2-2)"},
		{"before the list for audits", "O:SYD:P(D;;FA;;;NU)S:(AU;SAFA;FA;;;WD)", []string{user}, "O:SYD:P(D;;FA;;;NU)(A;;0x12019b;;;S-1-5-93-2-2)S:(AU;SAFA;FA;;;WD)"},
		{"an owner that ends in D", "O:EDD:P(A;;FA;;;SY)", []string{user}, "O:EDD:P(A;;FA;;;SY)(A;;0x12019b;;;S-1-5-93-2-2)"},
		{"an owner that ends in S", "O:LSD:P(A;;FA;;;LS)S:P", []string{user}, "O:LSD:P(A;;FA;;;LS)(A;;0x12019b;;;S-1-5-93-2-2)S:P"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got, err := Descriptor(test.base, test.accounts); got != test.want || err != nil {
				t.Errorf("got  %s, %v\nwant %s", got, err, test.want)
			}
		})
	}
}

func TestABaseThatLetsEverybodyInIsRefused(t *testing.T) {
	for name, base := range map[string]string{
		"no list":                            "O:SYG:SY",
		"a list for audits alone":            "O:SYS:(AU;SAFA;FA;;;WD)",
		"a list of no access control":        "D:NO_ACCESS_CONTROL",
		"the same, protected":                "O:SYD:PNO_ACCESS_CONTROLS:P",
		"a D: within an entry":               "O:SY(D:;FA;;;NU)",
		"the list for audits before":         "S:(AU;SAFA;FA;;;WD)D:P(A;;FA;;;SY)",
		"no more than a colon":               ":",
		"a condition, to which one is added": `D:P(XA;;FX;;;S-1-1-0;(@User.Title=="a)S:"))`,
	} {
		if got, err := Descriptor(base, []string{ContainerUser}); err == nil {
			t.Errorf("%s: got %s", name, got)
		}
	}
}

func TestAccountsOfManyAreRefused(t *testing.T) {
	const machine = "S-1-5-21-1111111111-2222222222-3333333333-"
	for name, sid := range map[string]string{
		"nothing": "", "a name": "Everyone", "an alias": "WD", "another descriptor": "S-1-5-93-2-2)(A;;FA;;;WD",
		"lower case": "s-1-5-93-2-2", "a space": "S-1-5-93-2-2 ", "a zero in front": "S-1-05-93-2-2", "a zero before the last": "S-1-5-93-2-02",
		"hexadecimal": "S-1-0x5-0xb", "a plus": "S-1-5-+11", "another revision": "S-2-5-11", "no more than an authority": "S-1-5", "an end": "S-1-5-",
		"a number that is too big": "S-1-5-21-1-2-3-4294967296", "too many numbers": "S-1-5" + strings.Repeat("-1", 16), "an authority of six bytes": "S-1-1099511627776-1",
		"nobody": "S-1-0-0", "Everyone": "S-1-1-0", "LOCAL": "S-1-2-0", "the console": "S-1-2-1", "CREATOR OWNER": "S-1-3-0", "OWNER RIGHTS": "S-1-3-4",
		"DIALUP": "S-1-5-1", "NETWORK": "S-1-5-2", "BATCH": "S-1-5-3", "INTERACTIVE": "S-1-5-4", "SERVICE": "S-1-5-6", "ANONYMOUS": "S-1-5-7",
		"SELF": "S-1-5-10", "Authenticated Users": "S-1-5-11", "RESTRICTED": "S-1-5-12", "terminal users": "S-1-5-13", "this organisation": "S-1-5-15", "IUSR": "S-1-5-17",
		"SYSTEM": "S-1-5-18", "write restricted": "S-1-5-33", "local accounts": "S-1-5-113", "a logon session": "S-1-5-5-0-1",
		"Administrators": "S-1-5-32-544", "Users": "S-1-5-32-545", "Guests": "S-1-5-32-546", "remote desktop": "S-1-5-32-555", "IIS_IUSRS": "S-1-5-32-568",
		"all services": "S-1-5-80-0", "all virtual machines": "S-1-5-83-0", "all application packages": "S-1-15-2-1", "an integrity label": "S-1-16-12288",
		"any container account": "S-1-5-93-2", "an unknown container account": "S-1-5-93-2-3",
		"the guest": machine + "501", "Domain Users": machine + "513", "Domain Guests": machine + "514", "Domain Computers": machine + "515", "a whole machine": strings.TrimSuffix(machine, "-"),
	} {
		if err := CheckAccount(sid); err == nil {
			t.Errorf("%s: %q was taken", name, sid)
		}
		if got, err := Descriptor("", []string{ContainerUser, sid}); err == nil {
			t.Errorf("%s: %q became %s", name, sid, got)
		}
	}
	for name, sid := range map[string]string{
		"ContainerUser": ContainerUser, "ContainerAdministrator": "S-1-5-93-2-1", "LOCAL SERVICE": "S-1-5-19", "NETWORK SERVICE": "S-1-5-20",
		"a user": machine + "1001", "a service": "S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464", "Entra ID": "S-1-12-1-1-2-3-4",
	} {
		if err := CheckAccount(sid); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNoGrantLetsAClientServe looks at every right that this package gives to anybody but SYSTEM.
func TestNoGrantLetsAClientServe(t *testing.T) {
	sddl, err := Descriptor("", []string{ContainerUser, "S-1-5-20"})
	if err != nil {
		t.Fatal(err)
	}
	const createInstance, writeDAC, writeOwner, remove = 0x4, 0x40000, 0x80000, 0x10000
	grants := 0
	for entry := range strings.SplitSeq(sddl, "(") {
		fields := strings.Split(strings.TrimSuffix(entry, ")"), ";")
		if fields[0] != "A" || fields[5] == "SY" || fields[2] == "RC" {
			continue
		}
		rights, err := strconv.ParseUint(fields[2], 0, 32)
		if err != nil || rights&(createInstance|writeDAC|writeOwner|remove) != 0 {
			t.Errorf("%s: %#x, %v", entry, rights, err)
		}
		grants++
	}
	if grants != 3 {
		t.Errorf("%d grants", grants)
	}
}
