package main

import (
	"errors"
	"slices"
	"strings"
	"testing"

	smb "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"
	system "github.com/kubernetes-csi/csi-proxy/client/api/system/v1alpha1"

	"github.com/pipeguard/pipeguard/internal/core/safepath"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/internal/proxy/fakehost"
	"github.com/pipeguard/pipeguard/internal/proxy/handler"
)

// asking returns an asker of a memory host.
func asking(t *testing.T, fault func(op string, args ...string) error) (*asker, *fakehost.Host) {
	t.Helper()
	roots, err := safepath.NewRoots(defaultKubelet)
	if err != nil {
		t.Fatal(err)
	}
	fake := fakehost.New(fakehost.Options{Roots: roots, Fault: fault})
	handlers, err := handler.New(handler.Hosts{Disk: fake, Filesystem: fake, Volume: fake, SMB: fake, ISCSI: fake, System: fake}, roots)
	if err != nil {
		t.Fatal(err)
	}
	a, err := newAsker(handlers)
	if err != nil {
		t.Fatal(err)
	}
	return a, fake
}

func TestSelftestChangesNothing(t *testing.T) {
	a, fake := asking(t, nil)
	answers := a.all(t.Context(), []string{defaultKubelet})
	ledger := fake.Ledger()
	for _, entry := range ledger {
		if entry.Changed || len(entry.Services) > 0 {
			t.Errorf("it changed the host: %+v", entry)
		}
	}
	if len(ledger) < 20 {
		t.Errorf("only %d operations reached the host", len(ledger))
	}
	for _, line := range answers {
		if line.Result == resultFailed {
			t.Errorf("%+v", line)
		}
	}
}

func TestSelftestAsksEveryGroup(t *testing.T) {
	a, _ := asking(t, nil)
	var asked []string
	for _, line := range a.all(t.Context(), []string{defaultKubelet}) {
		asked = append(asked, line.Group)
	}
	for _, group := range apiserver.Groups() {
		if !slices.Contains(asked, group) {
			t.Errorf("%s is not in the table", group)
		}
	}
}

func TestAnOperationThatChangesTheHostIsNotPerformed(t *testing.T) {
	a, fake := asking(t, nil)
	a.ask(t.Context(), "system", "StopService", &system.StopServiceRequest{Name: "RpcSs", Force: true})
	a.ask(t.Context(), "smb", "RemoveSmbGlobalMapping", &smb.RemoveSmbGlobalMappingRequest{RemotePath: `\\a\b`})
	a.ask(t.Context(), "system", "NoSuchOperation", &system.StopServiceRequest{})
	if got := fake.Ledger(); len(got) != 0 {
		t.Errorf("performed: %+v", got)
	}
	for _, line := range a.answers {
		if line.Result != resultFailed || !strings.Contains(line.Detail, "not performed") {
			t.Errorf("%+v", line)
		}
	}
}

func TestSelftestGoesOnAfterAFault(t *testing.T) {
	a, _ := asking(t, func(op string, _ ...string) error {
		if strings.HasPrefix(op, "ListDisk") || op == "BIOSSerialNumber" {
			return errors.New("the host does not answer")
		}
		return nil
	})
	failed := 0
	answers := a.all(t.Context(), []string{defaultKubelet})
	for _, line := range answers {
		if line.Result == resultFailed {
			failed++
			if !strings.Contains(line.Detail, "the host does not answer") {
				t.Errorf("%+v", line)
			}
		}
	}
	if failed != 3 || !slices.ContainsFunc(answers, func(l answer) bool { return l.Operation == `GetService {"name":"RpcSs"}` && l.Result == resultOK }) {
		t.Errorf("%d operations failed: %+v", failed, answers)
	}
}
