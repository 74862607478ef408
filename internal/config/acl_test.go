package config

import (
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/configfile"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/caller"
)

func aclFile(text string) string { return head + "acl:\n" + text }

func TestACLRefuses(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"a service account left empty":       {rule + "{namespace: a, serviceAccount: }]\n", []string{"f.yaml:8:48: acl.rules[0].callers[0].serviceAccount: has no value"}},
		"a namespace that is an empty text":  {rule + "{namespace: \"\", user: S-1-5-18}]\n", []string{"acl.rules[0].callers[0].namespace: has no value"}},
		"a namespace with a star":            {rule + "{namespace: \"team-*\"}]\n", []string{"f.yaml:8:17: acl.rules[0].callers[0]", "one namespace"}},
		"a container of any pod":             {rule + "{container: azuredisk}]\n", []string{"f.yaml:8:17: acl.rules[0].callers[0]", "every caller"}},
		"a list of namespaces":               {rule + "{namespace: [a, b]}]\n", []string{"line 8"}},
		"hostProcess in words":               {rule + "{namespace: a, hostProcess: sometimes}]\n", []string{"line 8"}},
		"a key of the policy objects":        {rule + "{namespace: a, serviceAccounts: [b]}]\n", []string{"line 8", "serviceAccounts"}},
		"a key of the pod":                   {rule + "{namespace: a, serviceAccountName: b}]\n", []string{"line 8", "serviceAccountName"}},
		"methods for operations":             {aclFile("  rules:\n    - name: r\n      pipes: [volume-v1]\n      methods: [Mkdir]\n      callers: [{user: S-1-5-18}]\n"), []string{"line 7", "methods"}},
		"pathPrefixes for paths":             {aclFile("  rules:\n    - name: r\n      pathPrefixes: ['C:\\a']\n"), []string{"line 6", "pathPrefixes"}},
		"a path prefix without an end":       {rule + "{user: S-1-5-18}]\n      paths: ['C:\\var\\lib\\kubelet*']\n", []string{"f.yaml:9:15: acl.rules[0].paths[0]"}},
		"no paths":                           {rule + "{user: S-1-5-18}]\n      paths: []\n", []string{"f.yaml:9:14: acl.rules[0].paths"}},
		"a limit without end":                {rule + "{user: S-1-5-18}]\n      limits: {connections: 100000}\n", []string{"f.yaml:9:29: acl.rules[0].limits.connections"}},
		"a limit of all that bounds nothing": {aclFile("  limits: {burst: 5}\n"), []string{"f.yaml:4:19: acl.limits.burst"}},
		"no connections":                     {rule + "{user: S-1-5-18}]\n      limits: {connections: 0}\n", []string{"f.yaml:9:29: acl.rules[0].limits.connections: is 0", "leave it out for no bound"}},
		"no calls":                           {rule + "{user: S-1-5-18}]\n      limits: {callsPerSecond: 0}\n", []string{"f.yaml:9:32: acl.rules[0].limits.callsPerSecond: is 0", "leave it out for no bound"}},
		"no calls at once":                   {rule + "{user: S-1-5-18}]\n      limits: {callsPerSecond: 5, burst: 0}\n", []string{"f.yaml:9:42: acl.rules[0].limits.burst: is 0"}},
		"0 in other words":                   {rule + "{user: S-1-5-18}]\n      limits: {connections: 0x0, callsPerSecond: -0, burst: 00}\n", []string{"line 9: a number of another base", "\nline 9: a number of another base"}},
		"no calls of anybody":                {aclFile("  limits:\n    callsPerSecond: 0\n    connections: 0\n"), []string{"f.yaml:5:21: acl.limits.callsPerSecond: is 0", "f.yaml:6:18: acl.limits.connections: is 0"}},
		"fewer than no calls":                {rule + "{user: S-1-5-18}]\n      limits: {callsPerSecond: -1}\n", []string{"f.yaml:9:32: acl.rules[0].limits.callsPerSecond: -1: want 1 to"}},
		"fewer than no connections":          {aclFile("  limits: {connections: -1}\n"), []string{"f.yaml:4:25: acl.limits.connections: -1: want 1 to"}},
		"a burst below nothing":              {aclFile("  limits: {callsPerSecond: 1, burst: -1}\n"), []string{"f.yaml:4:38: acl.limits.burst: -1: want 1 to"}},
		"an unknown limit":                   {aclFile("  limits: {callsPerMinute: 5}\n"), []string{"line 4", "callsPerMinute"}},
		"an unknown profile":                 {aclFile("  profiles: [azuredisk, azure]\n"), []string{"f.yaml:4:25: acl.profiles[1]", "there is no profile \"azure\""}},
		"a profile without a name":           {aclFile("  profiles: [{namespace: a}]\n"), []string{"f.yaml:4:14: acl.profiles[0]"}},
		"a profile with an unknown key":      {aclFile("  profiles:\n    - name: smb\n      serviceaccount: x\n"), []string{"line 6", "serviceaccount"}},
		"a profile with a key twice":         {aclFile("  profiles:\n    - name: smb\n      name: smb\n"), []string{"line 6", "name"}},
		"a profile with a list":              {aclFile("  profiles: [{name: smb, namespace: [a]}]\n"), []string{"line 4: a value of type !!seq where string is expected"}},
		"a profile with an empty key":        {aclFile("  profiles: [{name: smb, namespace: }]\n"), []string{"acl.profiles[0].namespace: has no value"}},
		"a list for a profile":               {aclFile("  profiles: [[smb]]\n"), []string{"line 4"}},
		"a profile with a bad namespace":     {aclFile("  profiles: [smb, {name: azurefile, namespace: \"*\"}]\n"), []string{"f.yaml:4:19: acl.profiles[1]", "one namespace"}},
		"a profile of a whole drive":         {aclFile("  profiles: [{name: smb, kubeletDir: 'C:\\a*'}]\n"), []string{"f.yaml:4:14: acl.profiles[0]"}},
		"a profile twice":                    {aclFile("  profiles: [smb, smb]\n"), []string{"f.yaml:4:19: acl.profiles[1]", "taken by another rule"}},
		"a key with an anchor":               {head + "&a acl:\n  rules: []\n", []string{"line 3: anchors, aliases and merges"}},
		"an alias for a key":                 {aclFile("  profiles: [smb]\ntokens:\n  pipes: {&d filesystem-v1: required, *d : 'off'}\n"), []string{"line 6: anchors, aliases and merges"}},
		"an alias for a profile":             {aclFile("  profiles: [&a smb, *a]\n"), []string{"line 4: anchors, aliases and merges"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseProxy("f.yaml", []byte(tt.text))
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
		})
	}
}

// everything sets each key of the access list.
const everything = `
  pipes: [{pipe: disk-v1, mode: LogOnly}]
  limits: {connections: 8, callsPerSecond: 50, burst: 100}
  rules:
    - name: own
      pipes: [filesystem-v1]
      operations: [Mkdir]
      paths: ['C:\var\lib\kubelet\plugins\own']
      limits: {connections: 2, callsPerSecond: 5}
      callers:
        - {namespace: team-a, serviceAccount: node, container: driver, image: "r.io/a/*", hostProcess: false, token: true, assurance: pod}
        - {serviceAccount: team-b/node}
  profiles:
    - smb
    - {name: azurefile, namespace: storage, serviceAccount: "*"}
`

func TestEveryKeyOfTheACLHolds(t *testing.T) {
	p, err := ParseProxy("f.yaml", []byte(aclFile(everything[1:])))
	if err != nil {
		t.Fatal(err)
	}
	policy, err := p.Policy(known)
	if err != nil {
		t.Fatal(err)
	}
	const path = `C:\var\lib\kubelet\plugins\own\x`
	a := caller.Caller{Assurance: "pod", Pod: caller.Pod{Namespace: "team-a", ServiceAccount: "node"}, Container: caller.Container{Name: "driver", Image: "r.io/a/x:v1"}, Token: true}
	b := caller.Caller{Assurance: "pod", Pod: caller.Pod{Namespace: "team-b", ServiceAccount: "node"}}
	for name, tt := range map[string]struct {
		caller     caller.Caller
		pipe, op   string
		path, rule string
	}{
		"all fields":          {a, "filesystem", "Mkdir", path, "own"},
		"the other caller":    {b, "filesystem", "Mkdir", path, "own"},
		"another path":        {b, "filesystem", "Mkdir", `C:\Windows\x`, ""},
		"a profile's driver":  {caller.Caller{Assurance: "pod", Pod: caller.Pod{Namespace: "kube-system", ServiceAccount: "csi-smb-node-sa"}, Container: caller.Container{Name: "smb"}}, "smb", "NewSmbGlobalMapping", path, "smb@kube-system/csi-smb-node-sa:paths"},
		"a profile elsewhere": {caller.Caller{Assurance: "pod", Pod: caller.Pod{Namespace: "storage"}, Container: caller.Container{Name: "azurefile"}}, "smb", "NewSmbGlobalMapping", path, "azurefile@storage/*:paths"},
		"without the token":   {caller.Caller{Assurance: "pod", Pod: caller.Pod{Namespace: "team-a", ServiceAccount: "node"}, Container: caller.Container{Name: "driver", Image: "r.io/a/x:v1"}}, "filesystem", "Mkdir", path, ""},
	} {
		d := policy.Decide(access.Call{Group: tt.pipe, Version: "v1", Operation: tt.op, Caller: tt.caller, Paths: []string{tt.path}})
		if d.Rule != tt.rule {
			t.Errorf("%s: %+v, want rule %q", name, d, tt.rule)
		}
		want := access.Limits{Connections: 8, CallsPerSecond: 50, Burst: 100}
		if tt.rule == "own" {
			want = access.Limits{Connections: 2, CallsPerSecond: 5}
		}
		if d.Limits != want {
			t.Errorf("%s: limits %+v, want %+v", name, d.Limits, want)
		}
	}
	if n := len(p.Spec().Rules); n != 5 {
		t.Errorf("%d rules, want one and two for each profile", n)
	}
	warnings := strings.Join(p.Warnings(), "\n")
	for _, want := range []string{"f.yaml:4:11: acl.pipes[0]: disk-v1 is in mode LogOnly", "f.yaml:13:79: acl.rules[0].callers[0].image", "f.yaml:17:7: acl.profiles[1]: is every pod of namespace storage"} {
		if !strings.Contains(warnings, want) {
			t.Errorf("warnings do not say %q:\n%s", want, warnings)
		}
	}
}

func TestAccessListsAreReadStrictly(t *testing.T) {
	const start = "  rules:\n  - name: r\n    pipes: [volume-v1]\n"
	for name, tt := range map[string]struct{ text, want string }{
		"an unknown key":         {"  rule: []\n", `unknown key "rule"`},
		"a rule's subject":       {start + "    operations: [Mkdir]\n    subject: {namespace: a}\n", `unknown key "subject"`},
		"pipes that are implied": {start + "    operations: [Mkdir]\n    implied: [disk-v1]\n", `unknown key "implied"`},
		"what calls count as":    {start + "    operations: [Mkdir]\n    countedas: a\n", `unknown key "countedas"`},
		"an unknown operation":   {start + "    operations: [LinkPath]\n    callers: [{user: S-1-5-18}]\n", "acl.rules[0].operations[0]"},
		"an empty user":          {start + "    operations: [MountVolume]\n    callers: [{user: , namespace: a}]\n", "acl.rules[0].callers[0].user: has no value"},
		"no calls":               {start + "    operations: [MountVolume]\n    callers: [{user: S-1-5-18}]\n    limits: {callsPerSecond: 0}\n", "acl.rules[0].limits.callsPerSecond: is 0"},
		"everybody":              {start + "    operations: [MountVolume]\n    callers: [{}]\n", "acl.rules[0].callers[0]"},
		"an unknown profile":     {"  profiles: [x]\n", "acl.profiles[0]"},
		"two documents":          {"  rules: []\n---\nrules: []\n", "more than one document"},
		"too long a text":        {"# " + strings.Repeat("x", configfile.MaxSize), "longer than"},
	} {
		p, err := ParseProxy("f.yaml", []byte(aclFile(tt.text)))
		if err == nil {
			_, err = p.Policy(known)
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v; want an error that says %q", name, err, tt.want)
		}
	}
}
