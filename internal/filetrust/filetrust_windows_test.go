package filetrust

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/windows"
)

func TestAnAccessListThatLetsOthersWriteIsRefused(t *testing.T) {
	const file, dir = takeOver | write, takeOver | write | deleteChild
	for name, test := range map[string]struct {
		sddl   string
		rights windows.ACCESS_MASK
		want   string // "" is accepted
	}{
		"SYSTEM and administrators":                 {"D:P(A;;FA;;;SY)(A;;FA;;;BA)", file, ""},
		"users who read and run":                    {"D:P(A;;FA;;;SY)(A;;0x1200a9;;;BU)", file, ""},
		"an empty list":                             {"D:P", file, ""},
		"entries for what is beneath alone":         {"D:P(A;;FA;;;SY)(A;OICIIO;FA;;;WD)", dir, ""},
		"the installer of Windows":                  {"D:P(A;;FA;;;" + trustedInstaller + ")", file, ""},
		"the owner's rights":                        {"D:P(A;;FA;;;OW)", file, ""},
		"users may not, and nobody else is named":   {"D:P(D;;FA;;;BU)", file, ""},
		"users who make directories above":          {"D:P(A;;FA;;;BA)(A;CI;0x116;;;BU)", takeOver | deleteChild, ""},
		"everybody writes":                          {"D:P(A;;FA;;;BA)(A;;0x2;;;WD)", file, "S-1-1-0"},
		"users append":                              {"D:P(A;;FA;;;BA)(A;;0x4;;;BU)", file, "S-1-5-32-545"},
		"signed-in users modify, as beneath C:":     {"D:AI(A;ID;FA;;;BA)(A;ID;0x1301bf;;;AU)", file, "S-1-5-11"},
		"a container's account has everything":      {"D:P(A;;FA;;;S-1-5-93-2-1)", file, "S-1-5-93-2-1"},
		"local service may change the list":         {"D:P(A;;WD;;;LS)", file, "S-1-5-19"},
		"network service may take it over":          {"D:P(A;;WO;;;NS)", file, "S-1-5-20"},
		"users may remove it":                       {"D:P(A;;SD;;;BU)", file, "S-1-5-32-545"},
		"users may remove what is in it":            {"D:P(A;;0x40;;;BU)", takeOver | deleteChild, "S-1-5-32-545"},
		"generic rights":                            {"D:P(A;;GA;;;WD)", file, "S-1-1-0"},
		"everything, but for those who are denied":  {"D:P(D;;FA;;;BG)(A;;FA;;;WD)", file, "S-1-1-0"},
		"an entry with a condition":                 {`D:P(XA;;FA;;;BA;(@User.x=="y"))`, file, "the kind"},
		"no list at all":                            {"O:BA", file, "no access list"},
		"the creator of what is in it, on the file": {"D:P(A;;FA;;;CO)", file, "S-1-3-0"},
	} {
		t.Run(name, func(t *testing.T) {
			descriptor, err := windows.SecurityDescriptorFromString(test.sddl)
			if err != nil {
				if strings.Contains(test.sddl, "XA;") || strings.Contains(test.sddl, ";OW)") {
					t.Skip("this system does not read such an entry:", err)
				}
				t.Fatal(err)
			}
			err = judge(`C:\x`, descriptor, test.rights)
			switch {
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want an error that says %q", err, test.want)
			}
		})
	}
}

// What a directory beneath C:\ takes over there by default: users may make files and directories in it, and remove none.
func TestOthersMayMakeFilesBesideWhatIsPlacedAndReplaceNothing(t *testing.T) {
	for name, test := range map[string]struct {
		sddl          string
		placed, alone bool // whether it is refused
	}{
		"as beneath C:":             {"D:AI(A;OICIID;FA;;;SY)(A;OICIID;FA;;;BA)(A;OICIID;0x1200a9;;;BU)(A;CIID;0x4;;;BU)(A;CIID;0x2;;;BU)", false, true},
		"users who remove":          {"D:P(A;;FA;;;BA)(A;;0x40;;;BU)", true, true},
		"users who change its list": {"D:P(A;;FA;;;BA)(A;;WD;;;BU)", true, true},
		"users who read":            {"D:P(A;;FA;;;BA)(A;;0x1200a9;;;BU)", false, false},
	} {
		descriptor, err := windows.SecurityDescriptorFromString(test.sddl)
		if err != nil {
			t.Fatal(err)
		}
		for d, refused := range map[demand]bool{placed: test.placed, alone: test.alone} {
			if err := judge(`C:\x`, descriptor, d.denied(true)); (err != nil) != refused {
				t.Errorf("%s, demand %d: %v", name, d, err)
			}
		}
	}
}

// What comes of an access list on the disk is not looked at: Wine keeps a Unix mode of it.
func TestCheckTakesWhatIsOursAndWhatIsNotThere(t *testing.T) {
	file := filepath.Join(t.TempDir(), "proxy.yaml")
	if err := Check(file); err != nil {
		t.Errorf("a file that is not there: %v", err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Check(file); err != nil {
		t.Errorf("a file of this account: %v", err)
	}
}
