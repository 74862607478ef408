package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/pipeguard/pipeguard/internal/filetrust"
	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/winsvc"
)

var somePower = winsvc.Power{
	Privileges:  []string{"SeChangeNotifyPrivilege", "SeDebugPrivilege"},
	Protections: []winsvc.Protection{{Name: "no child processes", On: true}, {Name: "redirection trust", Reason: "Windows refused it: not known"}},
}

func TestAServiceLogsWhatItMayDo(t *testing.T) {
	core, lines := observer.New(zap.InfoLevel)
	sayPower(zap.New(core), somePower.Protections, func(pid uint32) (winsvc.Power, error) {
		if int(pid) != os.Getpid() {
			t.Errorf("process %d was asked", pid)
		}
		return somePower, nil
	})
	for message, want := range map[string]string{"protection is on": "no child processes", "protection is off": "redirection trust"} {
		if found := lines.FilterMessage(message).All(); len(found) != 1 || found[0].ContextMap()[logkeys.Protection] != want {
			t.Errorf("%s: %+v", message, found)
		}
	}
	if n := lines.FilterField(zap.Strings(logkeys.Privileges, somePower.Privileges)).Len(); n != 1 {
		t.Errorf("%d lines with the privileges", n)
	}
	sayPower(zap.New(core), nil, func(uint32) (winsvc.Power, error) { return winsvc.Power{}, errors.New("no answer") })
	if lines.FilterMessage("privileges of this process are not known").Len() != 1 {
		t.Error("privileges that are not known are passed over in silence")
	}
}

func TestAServiceWarnsOfAProgramThatOthersCanChange(t *testing.T) {
	program := filepath.Join(t.TempDir(), "proxy.exe")
	core, lines := observer.New(zap.InfoLevel)
	warn := func(fault error) {
		checkOwnProgram(zap.New(core), func() (string, error) { return program, nil }, func(path string) error {
			if path != program {
				t.Errorf("%s is checked", path)
			}
			return fault
		})
	}
	warn(nil)
	if lines.Len() != 0 {
		t.Errorf("%+v", lines.All())
	}
	warn(&filetrust.Fault{Path: program, Reason: "everybody can write", Remedy: "take it away"})
	found := lines.FilterField(event(eventProgram)).All()
	if len(found) != 1 || found[0].Level != zap.WarnLevel || !strings.Contains(found[0].ContextMap()["error"].(string), "everybody can write") {
		t.Errorf("%+v", found)
	}
	checkOwnProgram(zap.New(core), func() (string, error) { return "", errors.New("no name") }, filetrust.Check)
	if lines.FilterField(event(eventProgram)).Len() != 2 {
		t.Error("a program that cannot be checked is passed over in silence")
	}
}

func TestStatusShowsWhatTheServiceMayDo(t *testing.T) {
	now := winsvc.Status{Installed: true, State: winsvc.Running, PID: 7, Command: `C:\p\proxy.exe -windows-service`,
		Limits: &winsvc.Limits{SID: winsvc.UnrestrictedSID, Privileges: []string{"SeDebugPrivilege"}}}
	s := describeStatus("csiproxy", now)
	err := s.askPower(now.PID, func(pid uint32) (winsvc.Power, error) {
		if pid != 7 {
			t.Errorf("process %d was asked", pid)
		}
		return somePower, nil
	}, func(path string) error { return errors.New("everybody can write to " + path) })
	if err != nil {
		t.Fatal(err)
	}
	var table, asJSON bytes.Buffer
	if err := errors.Join(s.print(&table, "table"), s.print(&asJSON, "json")); err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{
		"service SID unrestricted", "keeps privileges SeDebugPrivilege", "process holds SeChangeNotifyPrivilege, SeDebugPrivilege",
		"no child processes on", "redirection trust off: Windows refused it: not known", `PROGRAM CAN BE CHANGED everybody can write to C:\p\proxy.exe`,
	} {
		if text := strings.Join(strings.Fields(table.String()), " "); !strings.Contains(text, row) {
			t.Errorf("%q is not in\n%s", row, table.String())
		}
	}
	var back serviceStatus
	if err := json.Unmarshal(asJSON.Bytes(), &back); err != nil || back.SIDType != winsvc.UnrestrictedSID || len(back.Privileges) != 1 ||
		back.Process == nil || len(back.Process.Protections) != 2 || len(back.Process.Privileges) != 2 || back.ProgramFault == "" {
		t.Errorf("%v:\n%s", err, asJSON.String())
	}
}

func TestStatusSaysWhenAServiceIsNotLimitedAndAsksNoProcessThatIsNotThere(t *testing.T) {
	s := describeStatus("csiproxy", winsvc.Status{Installed: true, State: winsvc.Stopped, Limits: &winsvc.Limits{SID: winsvc.NoSID}})
	err := s.askPower(0, func(uint32) (winsvc.Power, error) { t.Error("a process was asked"); return winsvc.Power{}, nil }, filetrust.Check)
	var table bytes.Buffer
	if err := errors.Join(err, s.print(&table, "table")); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(table.String(), "all of its account's") || s.Process != nil {
		t.Errorf("%+v\n%s", s, table.String())
	}
	if err := s.askPower(7, func(uint32) (winsvc.Power, error) { return winsvc.Power{}, errors.New("access denied") }, filetrust.Check); err == nil {
		t.Error("a process that cannot be asked is no error")
	}
}
