package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

const module = "github.com/pipeguard/pipeguard"

// programs are the paths of what is built: the three programs, and the incident.
type programs struct{ webhook, proxy, pipeguard, incident string }

// build compiles the programs of this checkout into dir, whatever the current directory is.
func build(ctx context.Context, dir string) (programs, error) {
	root, err := moduleRoot(ctx)
	if err != nil {
		return programs{}, err
	}
	into := dir + string(os.PathSeparator)
	// Without debug symbols linking is quicker.
	cmd := exec.CommandContext(ctx, "go", "build", "-ldflags=-s -w", "-o", into, // #nosec G204 -- a directory of our own
		"./cmd/webhook", "./cmd/proxy", "./cmd/pipeguard", "./test/incident")
	cmd.Dir = root
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0") // a machine without a C compiler will do
	if out, err := cmd.CombinedOutput(); err != nil {
		return programs{}, fmt.Errorf("build the programs: %w\n%s", err, out)
	}
	exe := func(name string) string {
		if runtime.GOOS == "windows" {
			name += ".exe"
		}
		return filepath.Join(dir, name)
	}
	return programs{exe("webhook"), exe("proxy"), exe("pipeguard"), exe("incident")}, nil
}

func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Path}} {{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("find the module (run this inside the checkout): %w", err)
	}
	path, dir, _ := bytes.Cut(bytes.TrimSpace(out), []byte(" "))
	if string(path) != module {
		return "", fmt.Errorf("this is module %s; run inside a checkout of %s", path, module)
	}
	return string(dir), nil
}
