package acl

import (
	"slices"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/core/access"
)

// oneRule is a policy of one rule.
func oneRule(t *testing.T, change func(*Rule)) *Policy {
	t.Helper()
	r := Rule{Name: "r", Pipes: []string{"smb-*", "system-*", "filesystem-*"}, Operations: []string{"*"}, Callers: []CallerPattern{{Namespace: "kube-system"}}}
	change(&r)
	p, err := New(Spec{Rules: []Rule{r}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestSharesConfine(t *testing.T) {
	tests := []struct {
		pattern, share string
		want           bool
	}{
		{`\\files.example\data`, `\\files.example\data`, true},
		{`\\Files.Example\Data`, `\\files.example\data`, true},
		{`\\files.example\data`, `\\FILES.example\DATA`, true},
		{`\\files.example\*`, `\\files.example\anything`, true},
		{`\\files.example\pvc-*`, `\\files.example\pvc-1`, true},
		{`\\*.file.example\data`, `\\account.file.example\data`, true},
		{`\\*.file.example\*`, `\\a.b.file.example\x`, true},

		{`\\files.example\data`, `\\files.example\data2`, false},
		{`\\files.example\data`, `\\files.example.evil\data`, false},
		{`\\files.example\data`, `\\evil\data`, false},
		{`\\files.example\data`, `\\192.0.2.7\data`, false},
		{`\\files.example\data`, `\\files.example\data\sub`, false}, // a call names its share without what follows
		{`\\files.example\data`, `\\files.example`, false},
		{`\\files.example\*`, `\\files.example\`, false},
		{`\\files.example\pvc-*`, `\\files.example\pvc`, false},
		{`\\*.file.example\data`, `\\file.example\data`, false},
		{`\\*.file.example\data`, `\\.file.example\data`, false},
		{`\\*.file.example\data`, `\\evilfile.example\data`, false},
		{`\\*.file.example\data`, `\\account.file.example.evil\data`, false},
		{`\\files.example\data`, `files.example\data`, false},
		{`\\files.example\data`, ``, false},
	}
	for _, tt := range tests {
		p := oneRule(t, func(r *Rule) { r.Shares = []string{tt.pattern} })
		for _, operation := range []string{"NewSmbGlobalMapping", "RemoveSmbGlobalMapping"} {
			d := p.Decide(access.Call{Group: "smb", Version: "v1", Operation: operation, Caller: podCaller, Shares: []string{tt.share}})
			if d.Allowed != tt.want {
				t.Errorf("%s, %s of %q: allowed %v: %s", tt.pattern, operation, tt.share, d.Allowed, d.Reason)
			}
			if !d.Allowed && !strings.HasSuffix(d.Reason, " is not among its shares") {
				t.Errorf("%s: reason %q", tt.share, d.Reason)
			}
		}
	}
}

func TestServicesConfine(t *testing.T) {
	p := oneRule(t, func(r *Rule) { r.Services = []string{"MSiSCSI", "Spooler"} })
	for name, want := range map[string]bool{"MSiSCSI": true, "msiscsi": true, "SPOOLER": true, "RpcSs": false, "MSiSCSI2": false, "": false, "m\u017fiscsi": false, "MS\u0130SCSI": false} {
		for _, operation := range []string{"StartService", "StopService", "GetService"} {
			d := p.Decide(access.Call{Group: "system", Version: "v1alpha1", Operation: operation, Caller: podCaller, Services: []string{name}})
			if d.Allowed != want {
				t.Errorf("%s of %q: allowed %v: %s", operation, name, d.Allowed, d.Reason)
			}
		}
	}
	d := p.Decide(access.Call{Group: "system", Version: "v1alpha1", Operation: "StopService", Caller: podCaller, Services: []string{"msiscsi"}})
	if !slices.Equal(d.Services, []string{"MSiSCSI", "Spooler"}) {
		t.Errorf("the decision names the services %q", d.Services)
	}
}

func TestListsOfNamesAffectOnlyOperationsThatNameOne(t *testing.T) {
	p := oneRule(t, func(r *Rule) { r.Shares, r.Services = []string{`\\a\b`}, []string{"x"} })
	for operation, want := range map[string]bool{
		"Mkdir": true, "GetBIOSSerialNumber": true,
		// What names none where one belongs is not within the list.
		"NewSmbGlobalMapping": false, "RemoveSmbGlobalMapping": false, "StopService": false, "StartService": false, "GetService": false,
	} {
		group := map[bool]string{true: "smb", false: "system"}[access.TakesShares(operation)]
		d := p.Decide(access.Call{Group: group, Version: "v1", Operation: operation, Caller: podCaller, Paths: []string{`C:\a`}})
		if d.Allowed != want {
			t.Errorf("%s: allowed %v: %s", operation, d.Allowed, d.Reason)
		}
	}
	two := access.Call{Group: "smb", Version: "v1", Operation: "RemoveSmbGlobalMapping", Caller: podCaller, Shares: []string{`\\a\b`, `\\evil\b`}}
	if p.Decide(two).Allowed {
		t.Error("a call with a second share is allowed")
	}
}

func TestFaultsOfNames(t *testing.T) {
	for want, change := range map[string]func(*Rule){
		`shares[0]: share "\\\\*\\data": a star in the server`:    func(r *Rule) { r.Shares = []string{`\\*\data`} },
		`shares[0]: share "\\\\*.\\data": a star in the server`:   func(r *Rule) { r.Shares = []string{`\\*.\data`} },
		`shares[0]: share "\\\\a*b\\data": a star in the server`:  func(r *Rule) { r.Shares = []string{`\\a*b\data`} },
		`shares[1]: share "\\\\a\\d*a": a star in the share`:      func(r *Rule) { r.Shares = []string{`\\a\b`, `\\a\d*a`} },
		`shares[0]: share "\\\\a": want`:                          func(r *Rule) { r.Shares = []string{`\\a`} },
		`shares[0]: share "\\\\a\\b\\c": want`:                    func(r *Rule) { r.Shares = []string{`\\a\b\c`} },
		`shares[0]: share "//a/b": want`:                          func(r *Rule) { r.Shares = []string{`//a/b`} },
		`shares: is empty`:                                        func(r *Rule) { r.Shares = []string{} },
		`services: is empty`:                                      func(r *Rule) { r.Services = []string{} },
		`services[0]: service "*": want`:                          func(r *Rule) { r.Services = []string{"*"} },
		`services[1]: service "": want`:                           func(r *Rule) { r.Services = []string{"a", ""} },
		`permits[0]: NodeAccount needs shares`:                    func(r *Rule) { r.Permits = []string{access.NodeAccount} },
		`permits[0]: permit "Node": want Reformat, SystemDisk or`: func(r *Rule) { r.Permits = []string{"Node"} },
	} {
		r := Rule{Name: "r", Pipes: []string{"smb-*"}, Operations: []string{"*"}, Callers: []CallerPattern{{Namespace: "kube-system"}}}
		change(&r)
		if _, err := New(Spec{Rules: []Rule{r}}); err == nil || !strings.Contains(err.Error(), "rules[0]."+want) {
			t.Errorf("want %s, got %v", want, err)
		}
	}
}

func TestListsThatConfineNothingAreWarnedOf(t *testing.T) {
	p := oneRule(t, func(r *Rule) {
		r.Operations, r.Shares, r.Services = []string{"Mkdir"}, []string{`\\a\b`}, []string{"x"}
	})
	if w := p.Warnings().Error(); !strings.Contains(w, "rules[0].shares: confines nothing") || !strings.Contains(w, "rules[0].services: confines nothing") {
		t.Errorf("warnings:\n%s", w)
	}
}
