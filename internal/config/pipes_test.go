package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/proxy/pipe"
)

// served are pipes of each kind.
var served = []access.API{
	{Group: "disk", Version: "v1"}, {Group: "disk", Version: "v1beta1"}, {Group: "volume", Version: "v1"},
	{Group: "system", Version: "v1alpha1"}, {Group: "iscsi", Version: "v1alpha2"}, {Group: `\\.\pipe\Other-Server`},
}

func TestPipesLetAccountsInWhereTheirPatternCovers(t *testing.T) {
	const user, first, second = pipe.ContainerUser, "S-1-5-80-1-2-3-4-5", "S-1-5-21-1-2-3-1001"
	tests := []struct {
		name, text string
		want       map[string][]string
	}{
		{"nothing", "", map[string][]string{}},
		{"one pipe", "pipes: [{pipe: disk-v1, containerUser: true}]", map[string][]string{"csi-proxy-disk-v1": {user}}},
		{"a group", "pipes: [{pipe: 'disk-*', allow: [" + first + "]}]", map[string][]string{"csi-proxy-disk-v1": {first}, "csi-proxy-disk-v1beta1": {first}}},
		{"every pipe but those that must be named", "pipes: [{pipe: '*', containerUser: true}]",
			map[string][]string{"csi-proxy-disk-v1": {user}, "csi-proxy-disk-v1beta1": {user}, "csi-proxy-volume-v1": {user}}},
		{"a version of all but those", "pipes: [{pipe: '*-v1alpha1', containerUser: true}, {pipe: disk-v1, containerUser: true}]", nil},
		{"those by name", "pipes: [{pipe: 'system-*', containerUser: true}, {pipe: iscsi-v1alpha2, allow: [" + first + "]}]",
			map[string][]string{"csi-proxy-system-v1alpha1": {user}, "csi-proxy-iscsi-v1alpha2": {first}}},
		{"a forwarded pipe, whose case does not count", `pipes: [{pipe: '\\.\pipe\other-server', containerUser: true}]`, map[string][]string{"Other-Server": {user}}},
		{"entries add up", "pipes: [{pipe: disk-v1, containerUser: true, allow: [" + first + "]}, {pipe: 'disk-*', allow: [" + second + ", " + first + "]}]",
			map[string][]string{"csi-proxy-disk-v1": {user, first, second}, "csi-proxy-disk-v1beta1": {second, first}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p, err := ParseProxy("p.yaml", []byte(head+test.text+"\n"))
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.Accounts(served)
			if (err != nil) != (test.want == nil) {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPipesThatAreWrongAreFaultsWithTheirPlace(t *testing.T) {
	many := make([]string, pipe.MaxAccounts+1)
	for i := range many {
		many[i] = fmt.Sprintf("S-1-5-21-1-2-3-%d", 2000+i)
	}
	for _, test := range []struct{ name, text, want string }{
		{"an unknown key", "pipes: [{pipe: disk-v1, everyone: true}]", `unknown key "everyone"`},
		{"a descriptor", "pipes: [{pipe: disk-v1, sddl: 'D:P'}]", `unknown key "sddl"`},
		{"no list", "pipes: {pipe: disk-v1, containerUser: true}", "a value of type !!map where []"},
		{"no pattern", "pipes:\n- containerUser: true", `p.yaml:4:3: pipes[0].pipe: pipe "": want GROUP-VERSION`},
		{"a pattern that is none", "pipes:\n- {pipe: disk, containerUser: true}", `p.yaml:4:10: pipes[0].pipe: pipe "disk": want GROUP-VERSION`},
		{"a pipe of the node API by its full name", "pipes:\n- {pipe: '\\\\.\\pipe\\csi-proxy-disk-v1', containerUser: true}", "are written GROUP-VERSION"},
		{"nobody", "pipes:\n- pipe: disk-v1", "p.yaml:4:3: pipes[0]: adds no account"},
		{"nobody, spelt out", "pipes:\n- {pipe: disk-v1, containerUser: false, allow: []}", "pipes[0]: adds no account"},
		{"Everyone", "pipes:\n- pipe: disk-v1\n  allow: [S-1-5-20, S-1-1-0]", "p.yaml:5:21: pipes[0].allow[1]: account S-1-1-0 is Everyone"},
		{"Authenticated Users", "pipes: [{pipe: disk-v1, allow: [S-1-5-11]}]", "is Authenticated Users"},
		{"Users", "pipes: [{pipe: disk-v1, allow: [S-1-5-32-545]}]", "is Users"},
		{"NETWORK", "pipes: [{pipe: disk-v1, allow: [S-1-5-2]}]", "is NETWORK"},
		{"ANONYMOUS", "pipes: [{pipe: disk-v1, allow: [S-1-5-7]}]", "is ANONYMOUS"},
		{"Guests", "pipes: [{pipe: disk-v1, allow: [S-1-5-32-546]}]", "is Guests"},
		{"a name", "pipes: [{pipe: disk-v1, allow: [Everyone]}]", "want a SID"},
		{"a grant of more", "pipes: [{pipe: disk-v1, allow: ['S-1-5-93-2-2)(A;;FA;;;WD']}]", "want a SID"},
		{"an account twice", "pipes: [{pipe: disk-v1, allow: [S-1-5-20, S-1-5-20]}]", "pipes[0].allow[1]: S-1-5-20 is named twice"},
		{"ContainerUser twice", "pipes: [{pipe: disk-v1, containerUser: true, allow: [S-1-5-93-2-2]}]", "is named twice"},
		{"too many", "pipes: [{pipe: disk-v1, allow: [" + strings.Join(many, ", ") + "]}]", "pipes[0].allow: has 65 accounts"},
		{"an empty value", "pipes: [{pipe: disk-v1, allow: ['']}]", "has no value"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := ParseProxy("p.yaml", []byte(head+test.text+"\n"))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestPipesThatCoverNothingAreFaults(t *testing.T) {
	most := make([]string, pipe.MaxAccounts)
	for i := range most {
		most[i] = fmt.Sprintf("S-1-5-21-1-2-3-%d", 2000+i)
	}
	for _, test := range []struct{ name, text, want string }{
		{"a version that is not served", "pipes:\n- {pipe: disk-v2, containerUser: true}", `p.yaml:4:10: pipes[0].pipe: pipe "disk-v2" covers no pipe`},
		{"system by a star", "pipes:\n- {pipe: disk-v1, containerUser: true}\n- {pipe: '*-v1alpha1', containerUser: true}", `p.yaml:5:10: pipes[1].pipe: pipe "*-v1alpha1" covers no pipe`},
		{"a forwarded pipe that is not there", `pipes: [{pipe: '\\.\pipe\other', containerUser: true}]`, "covers no pipe"},
		{"tokens of a pipe that is not served", "tokens:\n  pipes: {disk-v1: required, disks-v1: required}\n  verify: {method: review, audience: x, api: {server: 'https://x', caFile: 'C:\\x', tokenFile: 'C:\\x'}}", `tokens.pipes.disks-v1: pipe "disks-v1" is not served`},
		{"tokens of pipes by a pattern", "tokens:\n  pipes: {'*': required}\n  verify: {method: review, audience: x, api: {server: 'https://x', caFile: 'C:\\x', tokenFile: 'C:\\x'}}", `pipe "*" is not served: want a name as disk-v1, and no pattern`},
		{"roles of a pipe in capitals", "tokens:\n  roles: [DISK-v1]\n  verify: {method: review, audience: x, api: {server: 'https://x', caFile: 'C:\\x', tokenFile: 'C:\\x'}}", `tokens.roles[0]: pipe "DISK-v1" is not served`},
		{"too many together", "pipes: [{pipe: disk-v1, containerUser: true}, {pipe: '*', allow: [" + strings.Join(most, ", ") + "]}]", "pipes[1].allow: pipe csi-proxy-disk-v1 has more than 64"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, err := ParseProxy("p.yaml", []byte(head+test.text+"\n"))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := p.Accounts(served); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, %v, want %q", got, err, test.want)
			}
		})
	}
}

func TestPipesHoldFromTheNextStart(t *testing.T) {
	started, err := ParseProxy("a", []byte(head))
	if err != nil {
		t.Fatal(err)
	}
	p, err := ParseProxy("b", []byte(head+"pipes: [{pipe: disk-v1, containerUser: true}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"pipes"}, p.RestartNeeded(started)); diff != "" {
		t.Error(diff)
	}
	again, err := ParseProxy("c", []byte(head+"pipes: [{pipe: disk-v1, containerUser: true}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	if keys := again.RestartNeeded(p); len(keys) != 0 {
		t.Errorf("the same file: %v", keys)
	}
}

// check-config said that files are in order with which no proxy started.
func TestAddressesAreLookedAtWhereverTheyAreWritten(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{`containers: {endpoint: foo}`, `containers.endpoint: runtime endpoint "foo": want \\.\pipe\NAME`},
		{`containers: {endpoint: 'unix://run/x.sock'}`, "containers.endpoint: "},
		{`containers: {endpoint: 'tcp://1.2.3.4:5'}`, "containers.endpoint: "},
		{`containers: {endpoint: '\\.\pipe\a', kubelet: {url: 'http://127.0.0.1:10250'}}`, `containers.kubelet.url: want https://HOST:PORT`},
		{`containers: {endpoint: '\\.\pipe\a', users: [S-1-5-18, S-1-5-93-2-1]}`, "containers.users[1]: account S-1-5-93-2-1 is that of containers"},
		{`containers: {endpoint: '\\.\pipe\a', users: [S-1-1-0]}`, `containers.users[0]: account "S-1-1-0": want the SID of one account`},
		{`containers: {endpoint: '\\.\pipe\a', users: ['uid:x']}`, "containers.users[0]: "},
		{`containers: {endpoint: '\\.\pipe\a', kubelet: {url: 'https://u:p@h/x?y#z'}}`, "containers.kubelet.url: "},
	} {
		if _, err := ParseProxy("p.yaml", []byte(head+test.text+"\n")); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.text, err, test.want)
		}
	}
	for _, good := range []string{`\\.\pipe\containerd-containerd`, `npipe:////./pipe/containerd-containerd`, `unix:///run/containerd.sock`} {
		if _, err := ParseProxy("p.yaml", []byte(head+"containers: {endpoint: '"+good+"'}\n")); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, good := range []string{"S-1-5-18", "S-1-5-20", "S-1-5-80-1-2-3-4-5", "uid:0"} {
		if _, err := ParseProxy("p.yaml", []byte(head+"containers: {endpoint: 'unix:///run/containerd.sock', users: ['"+good+"']}\n")); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
}

func TestServersThatNothingIdentifiesAreWarnedOf(t *testing.T) {
	for text, want := range map[string]string{
		`forward: [{pipe: a, to: b}]`:                                    "forward[0]",
		`forward: [{pipe: a, to: b, exe: 'C:\s.exe'}, {pipe: c, to: d}]`: "forward[1]",
		`forward: [{pipe: a, to: b, exe: 'C:\s.exe'}]`:                   "",
		"backend: upstream\nupstream: {pipe: 'up-*'}":                    "upstream",
		"backend: upstream\nupstream: {pipe: 'up-*', exe: 'C:\\s.exe'}":  "",
	} {
		p, err := ParseProxy("p.yaml", []byte(head+text+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		told := strings.Join(p.Warnings(), "\n")
		if is := strings.Contains(told, "the program that makes"); is != (want != "") || !strings.Contains(told, want+": calls") && is {
			t.Errorf("%s: %s", text, told)
		}
	}
}
