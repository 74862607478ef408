package kubelet

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/proxy/peer"
)

const snapshot = `{"pods":[{"uid":"aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa","namespace":"storage","name":"csi-a","serviceAccount":"csi-node"}]}`

func TestSnapshotNamesThePodsAccount(t *testing.T) {
	s := NewSnapshot(write(t, snapshot))
	for range 2 {
		if account, err := s.ServiceAccount(t.Context(), csi); err != nil || account != "csi-node" {
			t.Errorf("got %q, %v", account, err)
		}
	}
	for name, other := range map[string]caller.Pod{
		"another uid":       {Namespace: csi.Namespace, Name: csi.Name, UID: "b"},
		"another name":      {Namespace: csi.Namespace, Name: "b", UID: csi.UID},
		"another namespace": {Namespace: "b", Name: csi.Name, UID: csi.UID},
		"nothing":           {},
	} {
		if account, err := s.ServiceAccount(t.Context(), other); err != nil || account != "" {
			t.Errorf("%s: %q, %v", name, account, err)
		}
	}
}

func TestSnapshotThatDoesNotHoldIsWorthNothing(t *testing.T) {
	tests := []struct{ name, content, want string }{
		{"nothing", "", "empty"},
		{"an unknown key", strings.Replace(snapshot, `{"pods"`, `{"x":1,"pods"`, 1), "unknown field"},
		{"an unknown key of a pod", strings.Replace(snapshot, `"uid"`, `"id"`, 1), "unknown field"},
		{"a key in capital letters", strings.Replace(snapshot, `"uid"`, `"UID"`, 1), "unknown field"},
		{"a key twice", strings.Replace(snapshot, `"name"`, `"uid":"x","name"`, 1), "duplicate field"},
		{"half a file", snapshot[:len(snapshot)-1], "unexpected end"},
		{"two files", snapshot + snapshot, "after top-level"},
		{"no object", `[]`, "cannot unmarshal"},
		{"too much", strings.Repeat(" ", maxSnapshot+1), "more than"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := write(t, snapshot)
			s := NewSnapshot(path)
			if account, err := s.ServiceAccount(t.Context(), csi); err != nil || account == "" {
				t.Fatalf("got %q, %v", account, err)
			}
			if err := os.WriteFile(path, []byte(test.content), 0o600); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if account, err := s.ServiceAccount(t.Context(), csi); account != "" || err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %q, %v; want an error that says %q", account, err, test.want)
				}
			}
		})
	}
}

func TestWhatOthersCanChangeIsNotBelieved(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it has access lists instead of modes: internal/filetrust has their tests")
	}
	path := write(t, snapshot)
	s := NewSnapshot(path)
	if account, err := s.ServiceAccount(t.Context(), csi); account != "csi-node" || err != nil {
		t.Fatalf("%q, %v", account, err)
	}
	const forged = `{"pods":[{"uid":"aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa","namespace":"storage","name":"csi-a","serviceAccount":"csi-controller"}]}`
	if err := errors.Join(os.WriteFile(path, []byte(forged), 0o600), os.Chmod(path, 0o666)); err != nil {
		t.Fatal(err)
	}
	if account, err := s.ServiceAccount(t.Context(), csi); account != "" || err == nil || !strings.Contains(err.Error(), "others write") {
		t.Errorf("a snapshot that everybody can write: %q, %v", account, err)
	}

	f := start(t)
	c := f.client(t)
	if err := os.Chmod(f.ca, 0o666); err != nil {
		t.Fatal(err)
	}
	if account, err := c.ServiceAccount(t.Context(), csi); account != "" || err == nil || !strings.Contains(err.Error(), "others write") {
		t.Errorf("an authority that everybody can write: %q, %v", account, err)
	}
}

func TestSnapshotIsReadWhenItComes(t *testing.T) {
	path := write(t, snapshot)
	if err := os.Rename(path, path+".not-yet"); err != nil {
		t.Fatal(err)
	}
	s := NewSnapshot(path)
	if account, err := s.ServiceAccount(t.Context(), csi); account != "" || err == nil {
		t.Errorf("before: %q, %v", account, err)
	}
	if err := os.Rename(path+".not-yet", path); err != nil {
		t.Fatal(err)
	}
	if account, err := s.ServiceAccount(t.Context(), csi); account != "csi-node" || err != nil {
		t.Errorf("after: %q, %v", account, err)
	}
}

// source answers what it is told to.
type source struct {
	account string
	err     error
}

func (s source) ServiceAccount(context.Context, caller.Pod) (string, error) { return s.account, s.err }

func TestFirstAsksTheNextOnlyForWhatIsNotKnown(t *testing.T) {
	away := errors.New("away")
	tests := []struct {
		name    string
		sources []peer.Accounts
		want    string
		err     error
	}{
		{"the first knows", []peer.Accounts{source{"a", nil}, source{"b", nil}}, "a", nil},
		{"the second knows", []peer.Accounts{source{"", nil}, source{"b", nil}}, "b", nil},
		{"the first is away", []peer.Accounts{source{"", away}, source{"b", nil}}, "b", nil},
		{"the first is away and says something", []peer.Accounts{source{"a", away}, source{"", nil}}, "", away},
		{"both are away", []peer.Accounts{source{"", away}, source{"", away}}, "", away},
		{"nobody knows", []peer.Accounts{source{}, source{}}, "", nil},
		{"nobody is asked", nil, "", nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got, err := First(test.sources...).ServiceAccount(t.Context(), csi); got != test.want || !errors.Is(err, test.err) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}
