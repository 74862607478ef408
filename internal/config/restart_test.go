package config

import (
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRestartNeededNamesWhatAReloadDoesNotChange(t *testing.T) {
	started, err := ParseProxy("a", []byte(head+"limits: {connections: 5}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]string{
		head + "limits: {connections: 5}\n":                                    nil,
		head + "limits: {connections: 5}\nacl: {rules: []}\n":                  nil,
		head + "limits: {connections: 5}\nrequestPolicy: {modules: 'C:\\m'}\n": nil,
		head: {"limits.connections"},
		head + "limits: {connections: 5, waiting: 9}\n":                                                {"limits.waiting"},
		head + "limits: {connections: 5}\nbackend: memory\n":                                           {"backend"},
		head + "limits: {connections: 5}\naudit: {noSync: true}\n":                                     {"audit.noSync"},
		head + "limits: {connections: 5}\nlog: {path: C:\\x, eventLog: true}\n":                        {"log.path", "log.eventLog"},
		head + "limits: {connections: 5}\nforward: [{pipe: a, to: b}]\n":                               {"forward"},
		head + "limits: {connections: 5}\nbackend: upstream\nupstream: {pipe: up-*, groups: [disk]}\n": {"backend", "upstream.pipe", "upstream.groups"},
	} {
		p, err := ParseProxy("b", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, p.RestartNeeded(started)); diff != "" {
			t.Errorf("%s:\n%s", text, diff)
		}
	}
}

func TestWhatIsTheSameNeedsNoRestart(t *testing.T) {
	root := "/"
	if runtime.GOOS == "windows" {
		root = "C:/"
	}
	text := []byte(head + `acl: {profiles: [azuredisk]}
pipes: [{pipe: "disk-*", containerUser: true}, {pipe: system-v1alpha1, allow: [S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464]}]
bundle: {pool: a, keys: ` + root + `k, file: ` + root + `b}
tokens: {verify: {method: keys, keys: ` + root + `t, issuer: "https://cluster.example", audience: pipeguard}, pipes: {disk-v1: required}}
requestPolicy: {modules: ` + root + `m}
forward: [{pipe: a, to: b}]
`)
	a, err := ParseProxy("f", text)
	if err != nil {
		t.Fatal(err)
	}
	b, err := ParseProxy("f", text)
	if err != nil {
		t.Fatal(err)
	}
	if keys := b.RestartNeeded(a); len(keys) > 0 {
		t.Errorf("%v", keys)
	}
	c, err := ParseProxy("f", append(text, "limits: {connections: 5}\n"...))
	if err != nil {
		t.Fatal(err)
	}
	if keys := c.RestartNeeded(a); len(keys) != 1 || keys[0] != "limits.connections" {
		t.Errorf("%v", keys)
	}
}
