package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pipeguard/pipeguard/internal/audit/copies"
	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/config"
	"github.com/pipeguard/pipeguard/internal/httpsclient"
	"github.com/pipeguard/pipeguard/internal/proxy/kubelet"
	"github.com/pipeguard/pipeguard/internal/proxy/token"
)

// unusable reads the keys and certificates that a configuration names, as a start does, looks at what is in the places that a start writes to, and returns an error
// for each that would prevent a start. The note names the keys and certificates whose paths are of another system; they are not read.
func unusable(settings config.Proxy) (errs []error, note string) {
	bundle, tokens, audit, k := settings.Bundle, settings.Tokens, settings.Audit, settings.Containers.Kubelet
	verifies := cmp.Or(tokens.Verify.Keys, tokens.Verify.API.CAFile)
	if len(tokens.Pipes)+len(tokens.Roles) == 0 {
		verifies = ""
	}
	tokens.Verify.Node = cmp.Or(tokens.Verify.Node, "node")
	var elsewhere []string
	for _, f := range []struct {
		field, path string
		read        func() error
	}{
		{"bundle.keys", bundle.Keys, func() error { _, _, err := bundleKeys(bundle); return err }},
		{"bundle.caFile", bundle.CAFile, func() error { _, err := httpsclient.New(httpsclient.Options{CAFile: bundle.CAFile}); return err }},
		{"tokens.verify", verifies, func() error { _, err := token.New(tokens.Verify, token.Metrics{}); return err }},
		{"containers.kubelet.caFile", k.CAFile, func() error { _, err := kubelet.New(kubeletOptions(k, "node")); return err }},
		{"audit.signing.key", audit.Signing.Key, func() error { _, err := evidence.ReadKey(audit.Signing.Key); return err }},
		{"audit.signing.old", audit.Signing.Old, func() error { _, err := evidence.ReadKey(audit.Signing.Old); return err }},
		{"audit.witness.caFile", audit.Witness.CAFile, func() error { _, err := httpsclient.New(httpsclient.Options{CAFile: audit.Witness.CAFile}); return err }},
		{"audit.copies.otlp.caFile", audit.Copies.OTLP.CAFile, func() error { _, err := copies.OTLP(otlpOptions(audit.Copies.OTLP, "node")); return err }},
	} {
		switch {
		case f.path == "":
		case !filepath.IsAbs(f.path):
			elsewhere = append(elsewhere, f.field)
		default:
			if err := f.read(); err != nil {
				errs = append(errs, fmt.Errorf("configuration: %s: %w", f.field, err))
			}
		}
	}
	for _, place := range []struct {
		field, path string
		look        func(string) error
	}{{"audit.path", audit.Path, directory}, {"bundle.dir", bundle.Dir, directory}, {"log.path", settings.Log.Path, ordinary}} {
		if !filepath.IsAbs(place.path) {
			continue // it is not set, or of another system
		}
		if err := place.look(place.path); err != nil {
			errs = append(errs, fmt.Errorf("configuration: %s: %w", place.field, err))
		}
	}
	if len(elsewhere) > 0 {
		note = "not looked at, since such a file cannot be on this system: " + strings.Join(elsewhere, ", ")
	}
	return errs, note
}

// directory returns an error if what has this path is not a directory.
func directory(path string) error {
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		return fmt.Errorf("%s is not a directory: give another path, or move it away", path)
	}
	return nil // a start makes one, or says why it cannot
}

// ordinary returns an error if no ordinary file can have this path: something else has, or there is no such directory.
func ordinary(path string) error {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not an ordinary file: give another path, or move it away", path)
	}
	if _, err := os.Stat(filepath.Dir(path)); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: there is no such directory: make it, or give another path", path)
	}
	return nil
}
