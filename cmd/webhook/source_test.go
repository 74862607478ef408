package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A directory of Rego for nodes that was half written was signed as it was: with fewer refusals than all of it.
func TestAFileThatIsBeingWrittenIsNoChangeYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var written, changes atomic.Int64
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- followDigest(ctx, func() []byte { return []byte{byte(written.Load())} }, func() { changes.Add(1) })
		}()
		after := func(d time.Duration, want int64, what string) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			if got := changes.Load(); got != want {
				t.Errorf("%s: %d changes, want %d", what, got, want)
			}
		}
		after(pollFiles-time.Second/2, 0, "before the first look")
		for range 5 {
			written.Add(1)
			after(time.Second, 0, "it is being written")
		}
		after(2*time.Second, 1, "it stays")
		after(2*pollFiles, 1, "nothing has changed since")
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestFilesOfTheCommandLineAreBounded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Truncate(file, maxNamespaces+1)); err != nil {
		t.Fatal(err)
	}
	if _, err := loadNamespaces(file); err == nil || !strings.Contains(err.Error(), "more than 16777216 bytes") {
		t.Errorf("namespaces: %v", err)
	}
	s := &source{params: file}
	before := s.digest()
	if err := os.Truncate(file, maxNamespaces); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(s.digest(), before) { // what is behind the bound is not read
		t.Error("parameters beyond the bound are read")
	}
}
