package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/bundle"
	"github.com/pipeguard/pipeguard/test/bundletest"
	"github.com/pipeguard/pipeguard/test/harness"
)

func TestAKeyIsReadAnewEachTime(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bundle.key")
	s := &signing{key: file, log: zap.NewNop()}
	if _, err := s.readKey(); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a file that is not there: %v", err)
	}
	for range 2 {
		want := bundletest.NewKey(t)
		harness.Replace(t, file, bundletest.PrivatePEM(t, want))
		if got, err := s.readKey(); err != nil || got.ID() != want.ID() {
			t.Errorf("key %v, want %v: %v", got, want, err)
		}
	}
}

func TestWhatIsNoPrivateKeyIsRefusedWithoutShowingIt(t *testing.T) {
	key := bundletest.NewKey(t)
	text := bundletest.PrivatePEM(t, key)
	file := filepath.Join(t.TempDir(), "bundle.key")
	s := &signing{key: file, log: zap.NewNop()}
	middle := text[60:100]
	for name, text := range map[string]string{
		"nothing":           "",
		"half a key":        text[:len(text)/2],
		"the public half":   string(key.PublicPEM()),
		"two keys":          text + text,
		"text around it":    "key: " + text,
		"a changed key":     strings.Replace(text, middle, strings.Repeat("A", len(middle)), 1),
		"more than a key":   text + strings.Repeat(" ", 1<<20),
		"a password before": "hunter2\n" + text,
	} {
		harness.Replace(t, file, text)
		_, err := s.readKey()
		if err == nil {
			t.Errorf("%s is taken", name)
			continue
		}
		if !strings.Contains(err.Error(), file) || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), middle) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

const goodModule = `package pipeguard.node

findings contains finding if {
	input.operation == "GetDiskStats"
	finding := {"code": "SITE1", "effect": "deny"}
}
`

func TestRegoForNodesIsTriedBeforeItIsSigned(t *testing.T) {
	test := "package pipeguard.node_test\n\ntest_site if true\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  string // in the error; "" takes it
	}{
		"an addition":                   {map[string]string{"site.rego": goodModule, "site_test.rego": test}, ""},
		"what does not compile":         {map[string]string{"site.rego": goodModule + "\nx := y\n", "site_test.rego": test}, "site.rego:"},
		"no test":                       {map[string]string{"site.rego": goodModule}, "brings no test"},
		"a test that fails":             {map[string]string{"site.rego": goodModule, "site_test.rego": strings.Replace(test, "true", "false", 1)}, "test_site"},
		"a file of the built-in policy": {map[string]string{"input.rego": goodModule, "site_test.rego": test}, "input.rego: addition: this name is taken by a file of the base policy"},
		"a rule that names everybody":   {map[string]string{"site.rego": "package pipeguard.node\n\nis_named if true\n", "site_test.rego": test}, "is_named belongs to the base policy"},
		"a document that is gone":       {map[string]string{"site.rego": goodModule + "\nx := data.pipeguard.policies\n", "site_test.rego": test}, "data.pipeguard.policies is gone"},
		"a request to elsewhere":        {map[string]string{"site.rego": goodModule + "\nx := http.send({})\n", "site_test.rego": test}, "http.send"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range c.files {
				harness.Replace(t, filepath.Join(dir, file), text)
			}
			s := &signing{modules: dir, log: zap.NewNop()}
			files, err := s.readModules()
			if err != nil {
				t.Fatal(err)
			}
			b := bundle.Bundle{ACL: []byte("{}"), Modules: files}
			for range 2 { // the second answer is remembered
				err = s.try(t.Context(), b)
				if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v, want %q", err, c.want)
				}
			}
		})
	}
	if files, err := (&signing{modules: t.TempDir()}).readModules(); err == nil {
		t.Errorf("an empty directory is taken: %v", files)
	}
	if files, err := (&signing{modules: "/nonexistent"}).readModules(); err == nil {
		t.Errorf("no directory is taken: %v", files)
	}
	if files, err := (&signing{}).readModules(); err != nil || files != nil {
		t.Errorf("none: %v, %v", files, err)
	}
}

func TestAnotherKeyIsNoticed(t *testing.T) {
	dir := t.TempDir()
	// As the kubelet mounts a Secret: the file is a link through a directory that is exchanged.
	for _, name := range []string{"..1", "..2"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		harness.Replace(t, filepath.Join(dir, name, "bundle.key"), bundletest.PrivatePEM(t, bundletest.NewKey(t)))
	}
	point := func(name string) {
		next := filepath.Join(dir, "..next")
		if err := os.Symlink(name, next); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	point("..1")
	if err := os.Symlink("..data/bundle.key", filepath.Join(dir, "bundle.key")); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		s := &signing{key: filepath.Join(dir, "bundle.key"), log: zap.NewNop()}
		var changes atomic.Int64
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.follow(ctx, func() { changes.Add(1) }) }()
		time.Sleep(10 * pollFiles)
		synctest.Wait()
		if n := changes.Load(); n != 0 {
			t.Errorf("%d changes of what stays", n)
		}
		point("..2")
		time.Sleep(2 * pollFiles)
		synctest.Wait()
		if n := changes.Load(); n != 1 {
			t.Errorf("%d changes", n)
		}
		if err := os.Remove(filepath.Join(dir, "..2", "bundle.key")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * pollFiles)
		synctest.Wait()
		if n := changes.Load(); n != 2 {
			t.Errorf("%d changes, one of them a file that is gone", n)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
