package main

import (
	"cmp"
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

// keyFiles are the files of the keys that sign the log at path, the current key before one that is being rotated out.
func (o auditOptions) keyFiles(path string) []string {
	files := []string{cmp.Or(o.settings.Signing.Key, path+"-signing.key")}
	if o.settings.Signing.Old != "" {
		files = append(files, o.settings.Signing.Old)
	}
	return files
}

// states are the files with what each key signed last. They lie beside the keys, out of reach of an account that can write to the log alone.
func (o auditOptions) states(path string) []string {
	var files []string
	for _, file := range o.keyFiles(path) {
		files = append(files, file+".signed")
	}
	return files
}

// signingKeys reads the keys that sign the log at path. There are none if the configuration names no key and none was made yet.
func signingKeys(path string, o auditOptions) ([]*evidence.Key, error) {
	files := o.keyFiles(path)
	if o.settings.Signing.Key == "" {
		if _, err := os.Lstat(files[0]); errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
	}
	var keys []*evidence.Key
	for i, file := range files {
		if i == 0 {
			if err := errors.Join(filetrust.CheckOwners(file), winsvc.MakeFilePrivate(file)); err != nil {
				return nil, fmt.Errorf("audit log's key: %w", err)
			}
		}
		if err := filetrust.CheckOwners(file + ".signed"); err != nil {
			return nil, fmt.Errorf("what the audit log's key signed: %w", err)
		}
		key, err := evidence.ReadKey(file)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// newSigningKey makes the key of a log that was never signed. A log that was signed gets none: removing a key must not be a way to get a new one.
func newSigningKey(path string, wasSigned bool, o auditOptions) (*evidence.Key, error) {
	file := o.keyFiles(path)[0]
	if wasSigned {
		return nil, fmt.Errorf("the log has signed checkpoints, and its key %s is gone: bring it back, or move the log away and begin a new one", file)
	}
	if err := makeKey(file, o); err != nil {
		return nil, fmt.Errorf("make the audit log's key: %w", err)
	}
	if err := errors.Join(filetrust.CheckOwners(file), winsvc.MakeFilePrivate(file)); err != nil {
		return nil, fmt.Errorf("audit log's key: %w", err)
	}
	return evidence.ReadKey(file)
}

// makeKey makes a key of this node, with its public half beside it for verifiers of the log.
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
	o.log.Info("made a key for the audit log; verifiers of the log need its public half", zap.String(logkeys.Path, public))
	return nil
}
