package evidence

import (
	"fmt"
	"os"
	"runtime"

	"github.com/pipeguard/pipeguard/internal/atmost"
	"github.com/pipeguard/pipeguard/internal/atomicfile"
	"github.com/pipeguard/pipeguard/internal/winsvc"
)

// ReadKey reads a private key from a file that only its owner can read. On Windows the access list of its directory protects it.
func ReadKey(file string) (*Key, error) {
	info, err := os.Lstat(file)
	if err != nil {
		return nil, fmt.Errorf("audit key: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("audit key %s: not a regular file", file)
	}
	if mode := info.Mode().Perm(); runtime.GOOS != "windows" && mode&0o077 != 0 {
		return nil, fmt.Errorf("audit key %s: mode %#o lets other accounts read or change it; it must be 0600", file, mode)
	}
	text, err := atmost.ReadFile(file, 4096)
	if err != nil {
		return nil, fmt.Errorf("audit key: %w", err)
	}
	key, err := ParseKey(text)
	if err != nil {
		return nil, fmt.Errorf("audit key %s: %w", file, err)
	}
	return key, nil
}

// WriteKey writes a private key to a file that must not exist and that only its owner, on Windows SYSTEM and administrators, can open.
func WriteKey(file string, key *Key) error {
	f, err := winsvc.CreatePrivate(file)
	if err != nil {
		return err
	}
	_, err = f.Write(key.Secret())
	return atomicfile.Close(f, err)
}

// WriteKeys writes verifier keys, one a line, to a file that must not exist.
func WriteKeys(file string, keys ...string) error {
	var text []byte
	for _, k := range keys {
		text = append(append(text, k...), '\n')
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) // #nosec G302,G304 -- public, and the operator names it
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return atomicfile.Close(f, err)
}

// ReadKeys reads a file of verifier keys.
func ReadKeys(file string) (Keys, error) {
	text, err := atmost.ReadAny(file, 1<<20)
	if err != nil {
		return Keys{}, fmt.Errorf("verifier keys: %w", err)
	}
	keys, err := ParseKeys(string(text))
	if err != nil {
		return Keys{}, fmt.Errorf("verifier keys %s: %w", file, err)
	}
	return keys, nil
}
