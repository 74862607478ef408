package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/filetrust"
	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/winsvc"
)

// signingKeys reads the keys that sign the log at path. A log that was never signed, and whose configuration names no key, gets one.
// A log that was signed does not: whoever removes a key must not get another one by that.
func signingKeys(path string, wasSigned bool, o auditOptions) ([]*evidence.Key, error) {
	file := o.settings.Signing.Key
	if file == "" {
		file = path + "-signing.key"
		if _, err := os.Lstat(file); errors.Is(err, fs.ErrNotExist) {
			if wasSigned {
				return nil, fmt.Errorf("the log has signed checkpoints, and its key %s is gone: bring it back, or move the log away and begin a new one", file)
			}
			if err := makeKey(file, o); err != nil {
				return nil, fmt.Errorf("make the audit log's key: %w", err)
			}
		}
	}
	if err := errors.Join(filetrust.CheckOwners(file), winsvc.MakeFilePrivate(file)); err != nil {
		return nil, fmt.Errorf("audit log's key: %w", err)
	}
	key, err := evidence.ReadKey(file)
	if err != nil {
		return nil, err
	}
	keys := []*evidence.Key{key}
	if old := o.settings.Signing.Old; old != "" {
		key, err := evidence.ReadKey(old)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	o.log.Info("audit log is signed", zap.String(logkeys.Name, key.Name()), zap.Stringer(logkeys.VerifierKey, key))
	return keys, nil
}

// makeKey makes a key of this node, with its public half beside it for whoever is to verify the log.
func makeKey(file string, o auditOptions) error {
	key, err := evidence.NewKey(evidence.Origin(strings.ToLower(o.node))) // as the kubelet names the node
	if err != nil {
		return err
	}
	if err := evidence.WriteKey(file, key); err != nil {
		return err
	}
	public := file + ".pub"
	if err := os.Remove(public); err != nil && !errors.Is(err, fs.ErrNotExist) { // of a key that is gone
		return err
	}
	if err := evidence.WriteKeys(public, key.LogKey()); err != nil {
		return err
	}
	o.log.Info("made a key for the audit log; whoever verifies the log needs its public half", zap.String(logkeys.Path, public))
	return nil
}
