package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/test/clitest"
)

// Whether a process is in a container decides who is named, and a record says it as the proxy knew it.
func TestWhoIsInDoubtIsNamedByNoTool(t *testing.T) {
	file := clitest.Write(t, t.TempDir(), "proxy.yaml", `apiVersion: pipeguard.dev/v1alpha1
kind: ProxyConfig
acl:
  rules:
    - name: agent
      pipes: ["volume-*"]
      operations: [FormatVolume]
      callers: [{user: S-1-5-18, exe: 'C:\agent.exe'}]
    - name: driver
      pipes: ["volume-*"]
      operations: [FormatVolume]
      callers: [{namespace: team-a, container: driver}]
`)
	called := func(id string, change func(*audit.Who)) audit.Event {
		e := audit.Event{
			Type: audit.TypeRequest, Stage: audit.StageRequestReceived, ID: id,
			Who: &audit.Who{Assurance: "process", Process: &audit.WhoProcess{PID: 7, Exe: `C:\agent.exe`}, User: &audit.WhoUser{SID: "S-1-5-18"}},
			What: &audit.What{
				Pipe: "csi-proxy-volume-v1", Group: "volume", Version: "v1", Method: "FormatVolume", FullMethod: "/v1.Volume/FormatVolume",
				Params: json.RawMessage(`{"volume_id":"x"}`), Targets: []audit.Target{{Kind: "volume", Value: "x"}},
			},
			Decision: &audit.Decision{Effect: audit.EffectAllow, Rule: "driver", Policy: &audit.Policy{Name: "acl", Revision: "1"}},
		}
		change(e.Who)
		return e
	}
	records := clitest.Stream(t,
		called("host", func(w *audit.Who) { w.Host = true }),
		called("alone", func(*audit.Who) {}), // without a runtime to ask
		called("doubt", func(w *audit.Who) { w.Doubt = "whether it is in a container: the runtime does not answer" }),
		called("pod", func(w *audit.Who) {
			w.Assurance, w.Doubt = "pod", "the pod's service account: nobody knows it"
			w.Pod, w.Container = &audit.WhoPod{Namespace: "team-a", Name: "p", UID: "u"}, &audit.WhoContainer{ID: "c0ffee", Name: "driver"}
		}),
	)
	explain := func(name string, want bool, args ...string) {
		var r struct{ Named bool }
		got := execute(t, "", append([]string{"acl", "explain", file, "-o", "json"}, args...)...)
		if err := json.Unmarshal([]byte(got.Out), &r); err != nil {
			t.Fatal(err, got)
		}
		if got.Code != cli.ExitYes || r.Named != want || strings.Contains(got.Out, "PN004") == want {
			t.Errorf("%s: %+v, want named %v", name, got, want)
		}
	}
	for id, want := range map[string]bool{"host": true, "alone": true, "doubt": false, "pod": true} {
		explain(id, want, "--from-audit", records, "--id", id)
		got := execute(t, "", "policy", "eval", "--from-audit", records, "--id", id, "--config", file)
		if strings.Contains(got.Out, "deny by PN004") == want {
			t.Errorf("policy eval, %s: %+v", id, got)
		}
	}
	explain("a doubt that is set aside", true, "--from-audit", records, "--id", "doubt", "--caller", "doubt=false")
	for text, want := range map[string]bool{"": true, ",doubt=false": true, ",doubt=true": false} {
		explain("asked"+text, want, "--pipe", "volume-v1", "--method", "FormatVolume", "--caller", `user=S-1-5-18,exe=C:\agent.exe`+text)
	}
}

// A record is no better than the log that it is in.
func TestARecordOfALogThatWasChangedIsNoProof(t *testing.T) {
	file := clitest.Write(t, t.TempDir(), "proxy.yaml", `apiVersion: pipeguard.dev/v1alpha1
kind: ProxyConfig
acl:
  rules:
    - {name: agent, pipes: ["volume-*"], operations: [GetVolumeStats], callers: [{exe: 'C:\agent.exe'}]}
`)
	dir := filepath.Join(t.TempDir(), "log")
	event := audit.Event{
		Type: audit.TypeRequest, Stage: audit.StageRequestReceived, ID: "call",
		Who: &audit.Who{Assurance: "process", Process: &audit.WhoProcess{PID: 7, Exe: `C:\agent.exe`}, User: &audit.WhoUser{SID: "S-1-5-18"}},
		What: &audit.What{
			Pipe: "csi-proxy-volume-v1", Group: "volume", Version: "v1", Method: "GetVolumeStats", FullMethod: "/v1.Volume/GetVolumeStats", Params: json.RawMessage(`{}`),
		},
		Decision: &audit.Decision{Effect: audit.EffectAllow, Rule: "agent", Policy: &audit.Policy{Name: "acl", Revision: "1"}},
	}
	other := event
	other.ID = "other"
	clitest.Segments(t, dir, event, other)
	segments, err := filepath.Glob(filepath.Join(dir, "audit-*.jsonl"))
	if err != nil || len(segments) != 1 {
		t.Fatal(segments, err)
	}
	text, err := os.ReadFile(segments[0])
	if err != nil {
		t.Fatal(err)
	}
	head, tail, _ := strings.Cut(string(text), "\n")
	for name, c := range map[string]struct {
		text string
		code int
		want string
	}{
		"whole":          {string(text), cli.ExitYes, ""},
		"its own record": {strings.Replace(string(text), "S-1-5-18", "S-1-5-19", 1), cli.ExitNo, "the log was changed\n"},
		"another record": {strings.Replace(string(text), `"other"`, `"0ther"`, 1), cli.ExitNo, "the log was changed\n"},
		"a record twice": {string(text) + strings.SplitAfter(string(text), "\n")[1], cli.ExitIncomplete, "the log is incomplete or contradicts itself"},
		"a second end":   {strings.Replace(string(text), `"other"`, `"call"`, 1), cli.ExitNo, "the log was changed\n"},
		"no record":      {head + "\n{}\n" + tail, cli.ExitIncomplete, "line 2: "},
	} {
		if err := os.WriteFile(segments[0], []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, command := range [][]string{{"acl", "explain", file}, {"acl", "check", file}, {"policy", "eval", "--config", file}} {
			got := execute(t, "", append(command, "--from-audit", dir, "--id", "call")...)
			if got.Code != c.code || !strings.Contains(got.ErrOut, c.want) || got.Out == "" || c.want == "" && got.ErrOut != "" {
				t.Errorf("%s, %v: %+v, want %d and %q", name, command, got, c.code, c.want)
			}
		}
		if got := execute(t, "", "acl", "check", file, "--from-audit", dir, "--id", "none"); got.Code != cli.ExitBadInput || !strings.Contains(got.ErrOut, "holds no request") || !strings.Contains(got.ErrOut, c.want) {
			t.Errorf("%s, no such record: %+v", name, got)
		}
		if got := execute(t, "", "audit", "check", dir); got.Code != c.code && name != "whole" { // whose intents have no ends
			t.Errorf("%s: audit check says %d", name, got.Code)
		}
	}
}
