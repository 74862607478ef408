package windows

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/winsvc"
)

// installed is where an installation keeps its configuration.
const installed = `C:\ProgramData\Pipeguard\proxy.yaml`

// site is a machine that proxy.exe is installed on.
type site struct {
	*proxy
	exe string // the program that is run to install itself
	to  string
	t   *testing.T
}

func newSite(t *testing.T) *site {
	t.Helper()
	p := prepare(t)
	s := &site{proxy: p, exe: environment(t, "PIPEGUARD_PROXY"), to: filepath.Join(filepath.Dir(p.config), "Program Files", "Pipe guard"), t: t}
	t.Cleanup(func() { s.command("uninstall", "--purge") })
	return s
}

// command runs a subcommand of the program and returns what it printed and its exit code.
func (s *site) command(args ...string) (output string, code int) {
	s.t.Helper()
	return run(s.t, s.exe, args...)
}

// install installs with a configuration that is copied, and more flags of the service.
func (s *site) install(want int, more ...string) string {
	s.t.Helper()
	args := []string{"install", "--to", s.to, "--config-from", s.config, "--", "-kubelet-path", s.kubelet, "--audit-log", s.records,
		"-log_file", s.log, "-logtostderr=false", "-v=2"}
	output, code := s.command(append(args, more...)...)
	if code != want {
		s.t.Fatalf("install: exit code %d, want %d:\n%s", code, want, output)
	}
	return output
}

type shown struct {
	State, StartType, Command, Program, Version string
	PID                                         int
	Restarts                                    []string
	Process                                     *winsvc.Power
}

func (s *site) status(want int) shown {
	s.t.Helper()
	output, code := s.command("status", "-o", "json")
	var now shown
	if err := json.Unmarshal([]byte(output), &now); err != nil || code != want {
		s.t.Fatalf("status: exit code %d, want %d, %v:\n%s", code, want, err, output)
	}
	return now
}

func (s *site) rewrite(old, text string) {
	s.t.Helper()
	content := s.read(s.config)
	if !strings.Contains(content, old) {
		s.t.Fatalf("%q is not in %s", old, s.config)
	}
	if err := os.WriteFile(s.config, []byte(strings.Replace(content, old, text, 1)), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) read(file string) string {
	s.t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(content)
}

// works makes a call that the rules allow.
func (s *site) works(name string) {
	s.t.Helper()
	if err := dial(s.t, "v2alpha1").mkdir(bounded(s.t), s.path(name)); err != nil || !s.has(name) {
		s.t.Errorf("mkdir %s: %v", name, err)
	}
}

// newer makes a program that is not the same and does the same: Windows does not look at what follows its image.
func (s *site) newer() string {
	s.t.Helper()
	file := filepath.Join(filepath.Dir(s.config), "newer", "proxy.exe")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		s.t.Fatal(err)
	}
	from, err := os.Open(s.exe)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = from.Close() }()
	to, err := os.Create(file)
	if err != nil {
		s.t.Fatal(err)
	}
	_, err = io.Copy(to, io.MultiReader(from, strings.NewReader("newer")))
	if err := errors.Join(err, to.Close()); err != nil {
		s.t.Fatal(err)
	}
	return file
}
