package main

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/cmd/proxy/internal/install"
	"github.com/pipeguard/pipeguard/internal/winsvc"
)

// known is a service manager that is only asked.
type known map[string]winsvc.Status

func (k known) Status(name string) (winsvc.Status, error) { return k[name], nil }

var errAsked = errors.New("it is to be asked alone")

func (known) Dependents(string) ([]string, error)    { return nil, errAsked }
func (known) Put(winsvc.Spec) (winsvc.Change, error) { return winsvc.Change{}, errAsked }
func (known) SetStart(string, string) error          { return errAsked }
func (known) Start(context.Context, string) error    { return errAsked }
func (known) Stop(context.Context, string) error     { return errAsked }
func (known) Reload(string) error                    { return errAsked }
func (known) Delete(string) error                    { return errAsked }
func (known) Close() error                           { return nil }

func TestStatusTellsOfServicesThatAreBack(t *testing.T) {
	data := t.TempDir()
	if all, err := askReplaced(data, known{}); err != nil || all != nil {
		t.Errorf("without a record: %+v, %v", all, err)
	}
	put(t, filepath.Join(data, install.ReplacedName), `[{"name": "off"}, {"name": "back"}, {"name": "enabled"}, {"name": "gone"}]`)
	all, err := askReplaced(data, known{
		"off":     {Installed: true, State: winsvc.Stopped, StartType: winsvc.Disabled},
		"back":    {Installed: true, State: winsvc.Running, StartType: winsvc.Automatic, Command: `C:\k\csi-proxy.exe`},
		"enabled": {Installed: true, State: winsvc.Stopped, StartType: winsvc.Automatic, Command: `C:\k\csi-proxy.exe`},
	})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := (serviceStatus{Replaced: all}).printReplaced(&out); err != nil {
		t.Fatal(err)
	}
	want := "replaced: service off is stopped and disabled until proxy uninstall\n" +
		"REPLACED, AND BACK: service back is RUNNING, start type automatic: C:\\k\\csi-proxy.exe\n" +
		"REPLACED, AND BACK: service enabled is STOPPED, start type automatic: C:\\k\\csi-proxy.exe\n" +
		"replaced: service gone is gone\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	put(t, filepath.Join(data, install.ReplacedName), "{")
	if _, err := askReplaced(data, known{}); err == nil {
		t.Error("a record that cannot be read is passed over")
	}
}
