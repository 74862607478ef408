package witness

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/test/audit/witnesstest"
)

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFilesAreReadAgainAndFaultsChangeNothing(t *testing.T) {
	dir := t.TempDir()
	core, logs := observer.New(zap.DebugLevel)
	f := &Files{Key: filepath.Join(dir, "key"), NodeKeys: filepath.Join(dir, "keys"), Log: zap.New(core)}
	f.Read()
	if _, err := f.WitnessKey(); err == nil || some(f.Of("x")) || logs.Len() != 2 {
		t.Errorf("files that are not there: %v, %d lines", err, logs.Len())
	}
	f.Read()
	if logs.Len() != 2 {
		t.Errorf("the same fault is told again: %v", logs.All())
	}
	key, node, next := witnesstest.NewKey(t, "example.com/witness"), witnesstest.NewKey(t, evidence.Origin("win-1")), witnesstest.NewKey(t, evidence.Origin("win-1"))
	write(t, f.Key, string(key.Secret()))
	write(t, f.NodeKeys, "# of nodes\n"+node.LogKey()+"\n"+next.LogKey()+"\n"+key.WitnessKey()+"\n")
	f.Read()
	got, err := f.WitnessKey()
	if err != nil || got.WitnessKey() != key.WitnessKey() || len(f.Of(node.Name()).Describe()) != 2 || some(f.Of(key.Name())) {
		t.Errorf("%v, %v, %v", got, f.Of(node.Name()).Describe(), err)
	}
	secret := strings.TrimSpace(string(key.Secret()))
	for name, text := range map[string]string{
		"a private key among them": string(node.Secret()), "half a line": node.LogKey()[:20], "too much": strings.Repeat("#", maxKeysFile+1),
	} {
		write(t, f.NodeKeys, text)
		f.Read()
		if !some(f.Of(node.Name())) {
			t.Errorf("%s has taken all away", name)
		}
	}
	write(t, f.Key, "x"+secret)
	f.Read()
	if got, err := f.WitnessKey(); err != nil || got.WitnessKey() != key.WitnessKey() {
		t.Errorf("a key that is none: %v", err)
	}
	write(t, f.NodeKeys, "\n")
	f.Read()
	if some(f.Of(node.Name())) {
		t.Error("an empty file leaves keys")
	}
	for _, line := range logs.All() {
		if text, _ := line.ContextMap()["error"].(string); strings.Contains(text, "PRIVATE+KEY+example") || strings.Contains(text, secret[len(secret)-20:]) {
			t.Errorf("a key is in the log: %q", text)
		}
	}
}

func TestFilesAreFollowed(t *testing.T) {
	dir := t.TempDir()
	key, next := witnesstest.NewKey(t, "example.com/witness"), witnesstest.NewKey(t, "example.com/witness")
	// As the kubelet mounts a Secret: the file is a link, and others may read it.
	real := filepath.Join(dir, "..data")
	write(t, real, string(key.Secret()))
	if err := os.Symlink(real, filepath.Join(dir, "key")); err != nil {
		t.Skip("NOT RUN: no links here:", err)
	}
	if err := os.Chmod(real, 0o644); err != nil { // #nosec G302 -- what the kubelet does
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		f := &Files{Key: filepath.Join(dir, "key"), Log: zap.NewNop()}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- f.Follow(ctx, 10*time.Second) }()
		synctest.Wait()
		if got, err := f.WitnessKey(); err != nil || got.WitnessKey() != key.WitnessKey() {
			t.Errorf("at first: %v", err)
		}
		write(t, real, string(next.Secret()))
		time.Sleep(11 * time.Second)
		synctest.Wait()
		if got, err := f.WitnessKey(); err != nil || got.WitnessKey() != next.WitnessKey() {
			t.Errorf("after a change: %v", err)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
