package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/pipeguard/pipeguard/internal/audit/query"
	"github.com/pipeguard/pipeguard/test/harness"
)

// The test binary is the node that the story starts and kills.
func TestMain(m *testing.M) {
	if os.Getenv(nodeEnvironment) != "" {
		if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	if s, err := once(); err == nil {
		_ = os.RemoveAll(s.base)
	}
	os.Exit(code)
}

// played is one run of the story that the tests share, and what it said.
type played struct {
	places
	base string
	said string
}

var once = sync.OnceValues(func() (s played, err error) {
	if s.base, err = os.MkdirTemp("", "incident-test-"); err != nil {
		return s, err
	}
	s.places = places{filepath.Join(s.base, "run")}
	var out bytes.Buffer
	err = play(context.Background(), s.dir, &out)
	s.said = out.String()
	return s, err
})

func playOnce(t *testing.T) played {
	t.Helper()
	s, err := once()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var built = sync.OnceValues(func() (string, error) {
	s, err := once()
	if err != nil {
		return "", err
	}
	return harness.Build(context.Background(), s.base, "./cmd/pipeguard")
})

// pipeguard builds the program that the guide speaks of.
func pipeguard(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil || runtime.GOOS == "windows" {
		t.Skip("it is built where there is a toolchain, and the guide shows it under Linux")
	}
	exe, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

// records are those of a log that fit all terms, FIELD=VALUE or FIELD!=VALUE.
func recordsOf(t *testing.T, dir string, terms ...string) (found []query.Record) {
	t.Helper()
	f := &query.Filter{}
	for _, term := range terms {
		if err := f.Parse(term, day); err != nil {
			t.Fatal(err)
		}
	}
	source, err := query.Open([]string{dir}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for r, err := range source.Records() {
		if err != nil && !errors.As(err, new(*query.BadLine)) {
			t.Fatal(err)
		}
		if err == nil && f.Match(&r.Event) {
			found = append(found, r.Keep())
		}
	}
	return found
}
