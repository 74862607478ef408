package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/pipeguard/pipeguard/internal/winsvc"
)

// services is a service manager in memory. A program whose file says "broken" stops while it starts.
type services struct {
	mu       sync.Mutex // guards everything
	is       map[string]winsvc.Status
	log      []string
	stopErr  error
	putErr   error
	restarts int
	depend   map[string][]string // by the service that they depend on
	noLimits bool                // it knows of none, as Wine's
	keeps    bool                // it takes no list of privileges away again
}

func (s *services) Status(name string) (winsvc.Status, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.is[name], nil
}

func (s *services) Put(spec winsvc.Spec) (winsvc.Change, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.putErr != nil {
		return winsvc.Change{}, s.putErr
	}
	s.log = append(s.log, "put "+spec.Command)
	was := s.is[spec.Name]
	now := was
	now.Installed, now.Command, now.StartType, now.Account = true, spec.Command, "automatic", "LocalSystem"
	if !was.Installed {
		now.State = winsvc.Stopped
	}
	var err error
	switch {
	case spec.Limits == nil || s.noLimits:
	case s.keeps && len(spec.Limits.Privileges) == 0 && now.Limits != nil && len(now.Limits.Privileges) > 0:
		err = errors.New("the list of privileges stays")
	default:
		now.Limits = spec.Limits
	}
	s.is[spec.Name] = now
	if err != nil {
		return winsvc.Change{}, err
	}
	return winsvc.Change{Changed: now.Command != was.Command}, nil
}

func (s *services) Dependents(name string) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.depend[name], nil
}

func (s *services) SetStart(name, startType string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, ok := s.is[name]
	if !ok {
		return errors.New("it does not exist")
	}
	s.log = append(s.log, startType+" "+name)
	now.StartType = startType
	s.is[name] = now
	return nil
}

func (s *services) Start(_ context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.is[name]
	if now.StartType == winsvc.Disabled {
		return fmt.Errorf("service %s is disabled", name)
	}
	exe := winsvc.SplitCommandLine(now.Command)[0]
	text, err := os.ReadFile(exe)
	if err != nil {
		return err
	}
	if string(text) == "broken" {
		s.log = append(s.log, "start fails")
		return fmt.Errorf("service %s stopped while it was starting", name)
	}
	s.restarts++
	s.log = append(s.log, "start")
	now.State = winsvc.Running
	s.is[name] = now
	return nil
}

func (s *services) Stop(_ context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopErr != nil {
		return s.stopErr
	}
	if now, ok := s.is[name]; ok && now.State != winsvc.Stopped {
		s.log = append(s.log, "stop")
		now.State = winsvc.Stopped
		s.is[name] = now
	}
	return nil
}

func (s *services) Reload(string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, "reload")
	return nil
}

func (s *services) Delete(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, "delete")
	delete(s.is, name)
	return nil
}

func (s *services) Close() error { return nil }

// site is a machine to install on.
type site struct {
	t        *testing.T
	want     Want
	services *services
	said     []string
	private  []string
	theirs   bool // the installed configuration is somebody else's
}

func newSite(t *testing.T) *site {
	t.Helper()
	dir := t.TempDir()
	s := &site{t: t, services: &services{is: map[string]winsvc.Status{}}}
	s.want = Want{
		Name: "csiproxy", Source: filepath.Join(dir, "image", "proxy.exe"), Programs: filepath.Join(dir, "Program Files", "Pipeguard"),
		Data: filepath.Join(dir, "data"), ConfigFrom: filepath.Join(dir, "image", "proxy.yaml"), Args: []string{"-windows-service", "-working-dir", `D:\my data\`},
	}
	s.want.Config = filepath.Join(s.want.Data, ConfigName)
	s.write(s.want.Source, "one")
	s.write(s.want.ConfigFrom, "good 1")
	return s
}

func (s *site) write(file, text string) {
	s.t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) installer() *Installer {
	s.t.Helper()
	i, err := New(s.want, Parts{
		Manager:        s.services,
		MakePrivate:    func(dir string) error { s.private = append(s.private, dir); return os.MkdirAll(dir, 0o700) },
		MakePrograms:   func(dir string) error { return os.MkdirAll(dir, 0o700) },
		AddEventSource: func() (bool, error) { return false, nil },
		CheckWriters: func(string) error {
			if s.theirs {
				return errors.New("it belongs to somebody else")
			}
			return nil
		},
		CheckConfig: func(file string, text []byte) error {
			if bytes.HasPrefix(text, []byte("good")) {
				return nil
			}
			return fmt.Errorf("%s:1:1: bad", filepath.Base(file))
		},
		NeedsRestart: func(before, after []byte) bool {
			return bytes.Contains(before, []byte("start")) != bytes.Contains(after, []byte("start"))
		},
		Say: func(format string, args ...any) { s.said = append(s.said, fmt.Sprintf(format, args...)) },
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return i
}

func (s *site) apply() (bool, error) {
	s.t.Helper()
	s.services.log = nil
	return s.installer().Apply(s.t.Context())
}

// has checks the installed files.
func (s *site) has(exe, config string) {
	s.t.Helper()
	for file, want := range map[string]string{filepath.Join(s.want.Programs, exeName): exe, s.want.Config: config} {
		got, err := os.ReadFile(file)
		if string(got) != want {
			s.t.Errorf("%s holds %q, want %q (%v)", file, got, want, err)
		}
	}
	for _, dir := range []string{s.want.Programs, s.want.Data} {
		entries, err := os.ReadDir(dir)
		if err != nil && exe != "" {
			s.t.Error(err)
		}
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), newSuffix) || strings.HasSuffix(e.Name(), oldSuffix) {
				s.t.Errorf("%s is left", e.Name())
			}
		}
	}
}

func (s *site) runs(want bool) {
	s.t.Helper()
	if got, _ := s.services.Status(s.want.Name); (got.State == winsvc.Running) != want {
		s.t.Errorf("the service is %+v", got)
	}
}
