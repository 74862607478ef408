package pipe

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/windows"
)

// TestMain lets this binary be another process that listens: with PIPE_LISTEN set it serves the
// pipe of that name until its standard input ends.
func TestMain(m *testing.M) {
	if name := os.Getenv("PIPE_LISTEN"); name != "" {
		listener, err := Listen(name, Options{})
		if err != nil {
			panic(err)
		}
		go acceptAll(listener)
		_, _ = os.Stdout.WriteString("up\n")
		_, _ = io.Copy(io.Discard, os.Stdin) // its end is what is waited for
		_ = listener.Close()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func acceptAll(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() { _, _ = io.Copy(io.Discard, conn); _ = conn.Close() }()
	}
}

func pipeName(t *testing.T) string {
	return "test-" + strings.ToLower(t.Name())
}

func TestAddressIsAPipe(t *testing.T) {
	if got, want := Address("csi-proxy-filesystem-v1", Options{}), `\\.\pipe\csi-proxy-filesystem-v1`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// descriptor is the security descriptor of an open pipe, as it is stored.
func descriptor(t *testing.T, conn net.Conn) string {
	t.Helper()
	file, ok := conn.(interface{ Fd() uintptr })
	if !ok {
		t.Fatalf("a %T has no handle", conn)
	}
	sd, err := windows.GetSecurityInfo(windows.Handle(file.Fd()), windows.SE_KERNEL_OBJECT,
		windows.OWNER_SECURITY_INFORMATION|windows.GROUP_SECURITY_INFORMATION|windows.DACL_SECURITY_INFORMATION)
	if err != nil {
		t.Fatal(err)
	}
	return sd.String()
}

func TestThePipeHasTheDescriptorThatWasAskedFor(t *testing.T) {
	const addition = DefaultSDDL + `(A;;0x12019b;;;S-1-5-93-2-2)`
	for name, sddl := range map[string]string{"by default": "", "as given": addition} {
		t.Run(name, func(t *testing.T) {
			options := Options{SDDL: sddl}
			name := "test-descriptor-" + strings.ReplaceAll(name, " ", "-")
			listener, err := Listen(name, options)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = listener.Close() })
			go acceptAll(listener)
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
			t.Cleanup(cancel)
			conn, err := Dial(ctx, name, options)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			asked := sddl
			if asked == "" {
				asked = DefaultSDDL
			}
			sd, err := windows.SecurityDescriptorFromString(asked)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := descriptor(t, conn), sd.String(); got != want {
				t.Errorf("the pipe has   %s\nand should have %s", got, want)
			}
		})
	}
}

func TestADescriptorThatIsNoneIsRefused(t *testing.T) {
	for _, sddl := range []string{"x", "D:P(A;;FA;;;NOBODY)", "D:P(A;;FA;;;SY"} {
		if listener, err := Listen(pipeName(t), Options{SDDL: sddl}); err == nil {
			t.Errorf("%q was taken", sddl)
			_ = listener.Close()
		}
	}
}

func TestBytesPassBothWays(t *testing.T) {
	name := pipeName(t)
	listener, err := Listen(name, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	echoed := make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			echoed <- err
			return
		}
		_, err = io.CopyN(conn, conn, 4)
		echoed <- err
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	askedAndAnswered(t, listener)
	conn, err := Dial(ctx, name, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := conn.Write([]byte("ping")); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 4)
	if _, err := io.ReadFull(conn, answer); err != nil || string(answer) != "ping" {
		t.Errorf("%q, %v", answer, err)
	}
	if err := <-echoed; err != nil {
		t.Error(err)
	}
}

// askedAndAnswered waits until a pipe that is being accepted on has asked itself who serves it: until
// then it takes a client in its own process for the question. Under Wine the question also takes the place on the
// first instance, which Windows keeps shut and on which nobody ever answers.
func askedAndAnswered(t *testing.T, listener net.Listener) {
	t.Helper()
	g, ok := listener.(*guarded)
	if !ok {
		t.Fatalf("a %T asks nothing", listener)
	}
	for g.asking.Load() > 0 {
		runtime.Gosched()
	}
	if fault := g.fault.Load(); fault != nil {
		t.Fatal(*fault)
	}
}

func isWindows() bool {
	return windows.NewLazySystemDLL("ntdll.dll").NewProc("wine_get_version").Find() != nil
}

func TestVerifyOwnerTellsAnotherServerFromThisOne(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	own := pipeName(t)
	if err := verifyOwner(ctx, own, Options{}, 0); err == nil {
		t.Error("nobody serves, and it is ours")
	}
	listener, err := Listen(own, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go acceptAll(listener)
	if err := verifyOwner(ctx, own, Options{}, 0); err != nil {
		t.Errorf("our own pipe: %v", err)
	}

	taken := own + "-taken"
	squat(t, taken)
	if err := verifyOwner(ctx, taken, Options{}, 0); !errors.Is(err, ErrTaken) {
		t.Errorf("another process's pipe: %v", err)
	}
	if isWindows() { // Wine lets a second first instance be made, which is what verifyOwner is for
		if second, err := Listen(taken, Options{}); !errors.Is(err, ErrTaken) {
			t.Errorf("a second first instance: %v, %v", second, err)
		}
	}
}

func TestARefusalNamesTheProcessThatHasThePipe(t *testing.T) {
	name := pipeName(t)
	listener, err := Listen(name, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go acceptAll(listener)
	for _, code := range []error{windows.ERROR_ACCESS_DENIED, windows.ERROR_PIPE_BUSY, windows.ERROR_ALREADY_EXISTS} {
		err := explain(name, Options{}, code)
		if !errors.Is(err, ErrTaken) || !errors.Is(err, code) {
			t.Errorf("%v became %v", code, err)
		}
		if !strings.Contains(err.Error(), "by process") {
			t.Errorf("%q names no process", err)
		}
	}
	if err := explain(name, Options{SDDL: "O:SY"}, windows.ERROR_INVALID_OWNER); errors.Is(err, ErrTaken) || !strings.Contains(err.Error(), "run as SYSTEM") {
		t.Errorf("an owner that may not be set became %v", err)
	}
	if err := explain(name, Options{}, windows.ERROR_INVALID_NAME); errors.Is(err, ErrTaken) {
		t.Errorf("a bad name became %v", err)
	}
	if err := explain(name+"-free", Options{}, windows.ERROR_ACCESS_DENIED); !errors.Is(err, ErrTaken) {
		t.Errorf("an owner that does not answer became %v", err)
	}
}
