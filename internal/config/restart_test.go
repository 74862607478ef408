package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRestartNeededNamesWhatAReloadDoesNotChange(t *testing.T) {
	started, err := ParseProxy("a", []byte(head+"limits: {connections: 5}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]string{
		head + "limits: {connections: 5}\n":                   nil,
		head + "limits: {connections: 5}\nacl: {rules: []}\n": nil,
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
