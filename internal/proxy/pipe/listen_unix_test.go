//go:build unix

package pipe

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const name = "csi-proxy-filesystem-v1"

// TestMain lets this binary be another process that listens: with PIPE_LISTEN set it serves the
// pipe in that directory until its standard input ends.
func TestMain(m *testing.M) {
	if dir := os.Getenv("PIPE_LISTEN"); dir != "" {
		listener, err := Listen(name, Options{SocketDir: dir})
		if err != nil {
			panic(err)
		}
		_, _ = os.Stdout.WriteString("up\n")
		_, _ = io.Copy(io.Discard, os.Stdin) // its end is what is waited for
		_ = listener.Close()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestListenGivesTheSocketToThisUserAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	options := Options{SocketDir: dir}
	listener, err := Listen(name, options)
	if err != nil {
		t.Fatal(err)
	}
	address := Address(name, options)
	if want := filepath.Join(dir, name+".sock"); address != want {
		t.Errorf("address %q, want %q", address, want)
	}
	for path, want := range map[string]fs.FileMode{dir: fs.ModeDir | 0o700, address: fs.ModeSocket | 0o600} {
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != want {
			t.Errorf("%s has mode %s, want %s", path, info.Mode(), want)
		}
	}
	client, err := Dial(context.Background(), name, options)
	if err != nil {
		t.Fatal(err)
	}
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(client.Close(), server.Close(), listener.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(address); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("closing left the socket: %v", err)
	}
}

func TestListenRefusesADirectoryThatOthersCouldUse(t *testing.T) {
	tests := []struct {
		name string
		make func(t *testing.T, dir string) error
		want string
	}{
		{"others may read it", func(t *testing.T, dir string) error { return os.Mkdir(dir, 0o755) }, "must be 0700"},
		{"the group may write to it", func(t *testing.T, dir string) error { return mkdirMode(dir, 0o770) }, "must be 0700"},
		{"everybody may write to it", func(t *testing.T, dir string) error { return mkdirMode(dir, 0o777) }, "must be 0700"},
		{"its owner may not write to it", func(t *testing.T, dir string) error { return os.Mkdir(dir, 0o500) }, "must be 0700"},
		{"it is a link to a good one", func(t *testing.T, dir string) error { return os.Symlink(t.TempDir(), dir) }, "must be no link"},
		{"it is a file", func(t *testing.T, dir string) error { return os.WriteFile(dir, nil, 0o600) }, "not a directory"},
		{"its parent is missing", func(*testing.T, string) error { return nil }, "no such file"},
		{"everybody may rename it", func(_ *testing.T, dir string) error {
			return errors.Join(os.Mkdir(dir, 0o700), os.Chmod(filepath.Dir(dir), 0o777))
		}, "lets its group or others write"},
		{"everybody may rename what it is in", func(_ *testing.T, dir string) error {
			return errors.Join(os.Mkdir(dir, 0o700), os.Chmod(filepath.Dir(filepath.Dir(dir)), 0o777))
		}, "lets its group or others write"},
		{"what it is in belongs to somebody else", func(t *testing.T, dir string) error {
			if os.Geteuid() != 0 {
				t.Skip("only root can give a directory away")
			}
			return errors.Join(os.Mkdir(dir, 0o700), os.Chown(filepath.Dir(dir), 1, 1))
		}, "belongs to the user 1"},
		{"it belongs to somebody else", func(t *testing.T, dir string) error {
			if os.Geteuid() != 0 {
				t.Skip("only root can give a directory away")
			}
			return errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, 1, 1))
		}, "belongs to user 1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			above := filepath.Join(t.TempDir(), "above") // a test's own directory is not for others to be changed
			if err := os.Mkdir(above, 0o700); err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(above, "run")
			if strings.Contains(test.name, "missing") {
				dir = filepath.Join(dir, "run")
			}
			if err := test.make(t, dir); err != nil {
				t.Fatal(err)
			}
			listener, err := Listen(name, Options{SocketDir: dir})
			if err == nil {
				t.Fatalf("listens on %s", listener.Addr())
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %q does not say %q", err, test.want)
			}
		})
	}
	if listener, err := Listen(name, Options{}); err == nil {
		t.Errorf("without a directory it listens on %s", listener.Addr())
	}
}

func mkdirMode(dir string, mode fs.FileMode) error {
	return errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, mode)) // whatever the umask
}

func TestListenRefusesAnAnsweredName(t *testing.T) {
	options := Options{SocketDir: filepath.Join(t.TempDir(), "run")}
	first, err := Listen(name, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = first.Close() })
	if second, err := Listen(name, options); !errors.Is(err, ErrTaken) {
		t.Fatalf("a second listener: %v, %v", second, err)
	}
	client, err := Dial(context.Background(), name, options)
	if err != nil {
		t.Fatalf("the refusal cost the first listener its socket: %v", err)
	}
	_ = client.Close()
}

func TestListenReplacesASocketThatNobodyAnswers(t *testing.T) {
	options := Options{SocketDir: privateDir(t)}
	leaveBehind(t, Address(name, options))
	listener, err := Listen(name, options)
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Error(err)
	}
}

func TestListenKeepsWhatIsNotAStaleSocketOfOurs(t *testing.T) {
	tests := []struct {
		name string
		make func(t *testing.T, address string) error
	}{
		{"a file", func(_ *testing.T, address string) error { return os.WriteFile(address, []byte("kept"), 0o600) }},
		{"a directory", func(_ *testing.T, address string) error { return os.Mkdir(address, 0o700) }},
		{"a link to a stale socket", func(t *testing.T, address string) error {
			stale := filepath.Join(privateDir(t), "s")
			leaveBehind(t, stale)
			return os.Symlink(stale, address)
		}},
		{"somebody else's stale socket", func(t *testing.T, address string) error {
			if os.Geteuid() != 0 {
				t.Skip("only root can give a socket away")
			}
			leaveBehind(t, address)
			return os.Chown(address, 1, 1)
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			options := Options{SocketDir: privateDir(t)}
			address := Address(name, options)
			if err := test.make(t, address); err != nil {
				t.Fatal(err)
			}
			if listener, err := Listen(name, options); err == nil {
				t.Errorf("listens on %s", listener.Addr())
			}
			if _, err := os.Lstat(address); err != nil {
				t.Errorf("it was removed: %v", err)
			}
		})
	}
}

func TestOnlyOneOfManyListenersWins(t *testing.T) {
	options := Options{SocketDir: privateDir(t)}
	leaveBehind(t, Address(name, options))
	listeners := make(chan net.Listener, 16)
	var starting sync.WaitGroup
	for range cap(listeners) {
		starting.Go(func() {
			if listener, err := Listen(name, options); err == nil {
				listeners <- listener
			} else if !errors.Is(err, ErrTaken) {
				t.Error(err)
			}
		})
	}
	starting.Wait()
	close(listeners)
	if len(listeners) != 1 {
		t.Errorf("%d listeners on one name", len(listeners))
	}
	for listener := range listeners {
		_ = listener.Close()
	}
}

// privateDir has a short path, since a socket's address is short.
func privateDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "pipe")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// leaveBehind makes a socket as a killed process leaves one.
func leaveBehind(t *testing.T, address string) {
	t.Helper()
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: address, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	listener.SetUnlinkOnClose(false)
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestVerifyOwnerTellsAnotherServerFromThisOne(t *testing.T) {
	ctx := context.Background()
	own := Options{SocketDir: privateDir(t)}
	if err := verifyOwner(ctx, name, own, 0); err == nil {
		t.Error("nobody serves, and it is ours")
	}
	listener, err := Listen(name, own)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	if err := verifyOwner(ctx, name, own, 0); err != nil {
		t.Errorf("our own listener: %v", err)
	}

	other := Options{SocketDir: privateDir(t)}
	squat(t, other.SocketDir)
	if err := verifyOwner(ctx, name, other, 0); !errors.Is(err, ErrTaken) {
		t.Errorf("another process's listener: %v", err)
	}
}

func TestASocketThatWasReplacedIsNoticed(t *testing.T) {
	tests := []struct {
		name string
		do   func(t *testing.T, address string)
		want error
	}{
		{"nothing has happened", func(*testing.T, string) {}, nil},
		{"its mode was changed", func(t *testing.T, address string) { must(t, os.Chmod(address, 0o666)) }, nil},
		{"it was removed", func(t *testing.T, address string) { must(t, os.Remove(address)) }, ErrLost},
		{"it was renamed", func(t *testing.T, address string) { must(t, os.Rename(address, address+"x")) }, ErrLost},
		{"another socket was put in its place", func(t *testing.T, address string) {
			must(t, os.Remove(address))
			leaveBehind(t, address)
		}, ErrTaken},
		{"a file was put in its place", func(t *testing.T, address string) {
			must(t, os.Remove(address))
			must(t, os.WriteFile(address, nil, 0o600))
		}, ErrTaken},
		{"a link to it was put in its place", func(t *testing.T, address string) {
			must(t, os.Rename(address, address+"x"))
			must(t, os.Symlink(address+"x", address))
		}, ErrTaken},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			options := Options{SocketDir: privateDir(t)}
			listener, err := Listen(name, options)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = listener.Close() })
			test.do(t, Address(name, options))
			if err := listener.Verify(t.Context()); !errors.Is(err, test.want) || (err == nil) != (test.want == nil) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
