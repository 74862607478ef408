package main

import (
	"context"
	"path/filepath"

	"github.com/pipeguard/pipeguard/test/harness"
)

// programs are the paths of what is built: the three programs, and the incident.
type programs struct{ webhook, proxy, pipeguard, incident string }

// build compiles the programs of this checkout into dir.
func build(ctx context.Context, dir string) (programs, error) {
	incident, err := harness.Build(ctx, dir, "./cmd/webhook", "./cmd/proxy", "./cmd/pipeguard", "./test/incident")
	exe := func(name string) string { return filepath.Join(filepath.Dir(incident), name+filepath.Ext(incident)) }
	return programs{exe("webhook"), exe("proxy"), exe("pipeguard"), incident}, err
}
