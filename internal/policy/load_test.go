package policy

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func write(t testing.TB, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// configMap makes the layout of a kubelet's ConfigMap mount, or swaps its content as the kubelet does.
func configMap(t testing.TB, dir, generation string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		write(t, filepath.Join(dir, ".."+generation, name), text)
		link := filepath.Join(dir, name)
		if _, err := os.Lstat(link); err != nil {
			if err := os.Symlink(filepath.Join("..data", name), link); err != nil {
				t.Fatal(err)
			}
		}
	}
	next := filepath.Join(dir, "..data_tmp")
	if err := os.Symlink(".."+generation, next); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, filepath.Join(dir, "..data")); err != nil {
		t.Fatal(err)
	}
}

func TestLoadFSReadsRegoAndNothingElse(t *testing.T) {
	m, err := LoadFS(fstest.MapFS{
		"a.rego":          {Data: []byte("a")},
		"sub/b_test.rego": {Data: []byte("b")},
		".hidden.rego":    {Data: []byte("no")},
		".git/c.rego":     {Data: []byte("no")},
		"..data/a.rego":   {Data: []byte("no")},
		"readme.md":       {Data: []byte("no")},
		"data.json":       {Data: []byte("no")},
		"rego":            {Data: []byte("no")},
		"d.rego.orig":     {Data: []byte("no")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Modules{Files: map[string]string{"a.rego": "a", "sub/b_test.rego": "b"}}, m); diff != "" {
		t.Fatal(diff)
	}
}

func TestLoadFSReadsAConfigMapMountOnce(t *testing.T) {
	dir := t.TempDir()
	configMap(t, dir, "1", small().Files)
	m, err := LoadFS(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(small(), m); diff != "" {
		t.Fatal(diff)
	}
}

func TestLoadFSRefusesWhatItCannotBoundOrRead(t *testing.T) {
	many := fstest.MapFS{}
	for i := range 257 {
		many[fmt.Sprintf("%d.rego", i)] = &fstest.MapFile{}
	}
	large := fstest.MapFS{}
	for i := range 9 {
		large[fmt.Sprintf("%d.rego", i)] = &fstest.MapFile{Data: []byte(strings.Repeat("#", 250<<10))}
	}
	for name, c := range map[string]struct {
		fs   fstest.MapFS
		want string
	}{
		"many files":      {many, "more than 256 modules"},
		"a large file":    {fstest.MapFS{"a.rego": {Data: make([]byte, 256<<10+1)}}, "a.rego: more than 262144 bytes"},
		"large together":  {large, "more than 2097152 bytes"},
		"a dangling link": {fstest.MapFS{"a.rego": {Mode: os.ModeSymlink, Data: []byte("gone.rego")}}, "a.rego"},
		"a pipe":          {fstest.MapFS{"a.rego": {Mode: os.ModeNamedPipe}}, "a.rego: not a regular file"},
	} {
		if _, err := LoadFS(c.fs); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	_, err := LoadFS(os.DirFS(filepath.Join(t.TempDir(), "missing")))
	wantError(t, err, "read policy directory")
}
