package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	volumeapi "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/test/audit/recorded"
	"github.com/pipeguard/pipeguard/test/harness"
)

// attackPatience is more than any step takes; reached only by a test that fails.
const attackPatience = 2 * time.Minute

// TestActor is no test: it is the other process of the tests of this file's kind. It does what its standard input says, a
// line each, and answers with a line, until the input ends.
func TestActor(t *testing.T) {
	switch os.Getenv("PIPEGUARD_ACTOR") {
	case "caller":
		harness.Obey(os.Stdin, os.Stdout, new(actor).do)
		os.Exit(0)
	case "proxy":
		var args []string
		if err := json.Unmarshal([]byte(os.Getenv("PIPEGUARD_ARGS")), &args); err != nil {
			t.Fatal(err)
		}
		os.Exit(run(context.Background(), args, os.Stdout, os.Stderr))
	}
}

// actor is a process that opens a pipe and calls, or has others call in its stead.
type actor struct {
	conn   net.Conn
	client *grpc.ClientConn
	tokens []string // that calls carry
}

func (a *actor) do(verb, rest string) (string, error) {
	switch verb {
	case "open": // a pipe, and says nothing on it
		conn, err := net.Dial("unix", rest)
		a.conn, a.client = conn, nil
		return "done", err
	case "storm": // opens and closes connections to a pipe until the process ends
		go func() {
			for {
				if conn, err := net.Dial("unix", rest); err == nil {
					_ = conn.Close()
				}
			}
		}()
		return "done", nil
	case "call": // on whatever connection it has
		return a.call(rest)
	case "format": // a volume
		return a.format(rest)
	case "token": // none, or several with tabs between them
		a.tokens = strings.FieldsFunc(rest, func(r rune) bool { return r == '\t' })
		return "done", nil
	case "give": // the connection to whoever waits at an address
		return "done", give(rest, a.conn)
	case "take":
		conn, err := take(rest, func() { _, _ = fmt.Println("waiting") })
		a.conn, a.client = conn, nil
		return "done", err
	case "become": // another program, and keep the connection
		socket, err := a.conn.(*net.UnixConn).File()
		if err != nil {
			return "", err
		}
		if _, err := unix.FcntlInt(socket.Fd(), unix.F_SETFD, 0); err != nil {
			return "", err
		}
		return "", unix.Exec(rest, []string{rest, "60"}, os.Environ())
	}
	return "", fmt.Errorf("no verb %q", verb)
}

// call asks whether a path exists and returns the code of the answer and its text.
func (a *actor) call(path string) (string, error) {
	return a.ask(func(ctx context.Context, conn *grpc.ClientConn) error {
		_, err := v1.NewFilesystemClient(conn).PathExists(ctx, &v1.PathExistsRequest{Path: path})
		return err
	})
}

// format formats a volume and returns the code of the answer and its text.
func (a *actor) format(volume string) (string, error) {
	return a.ask(func(ctx context.Context, conn *grpc.ClientConn) error {
		_, err := volumeapi.NewVolumeClient(conn).FormatVolume(ctx, &volumeapi.FormatVolumeRequest{VolumeId: volume})
		return err
	})
}

// ask makes one call on whatever connection it has.
func (a *actor) ask(how func(context.Context, *grpc.ClientConn) error) (string, error) {
	if a.client == nil {
		conn, err := grpc.NewClient("passthrough:///pipe", grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			conn := a.conn
			if a.conn = nil; conn == nil {
				return nil, errors.New("the one connection was used")
			}
			return conn, nil
		}))
		if err != nil {
			return "", err
		}
		a.client = conn
	}
	ctx, cancel := context.WithTimeout(context.Background(), attackPatience)
	defer cancel()
	for _, token := range a.tokens {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	}
	err := how(ctx, a.client)
	return status.Code(err).String() + " " + status.Convert(err).Message(), nil
}

// give sends a descriptor (unix(7), SCM_RIGHTS) and keeps its own.
func give(address string, conn net.Conn) error {
	file, err := conn.(*net.UnixConn).File()
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	to, err := net.Dial("unix", address)
	if err != nil {
		return err
	}
	defer func() { _ = to.Close() }()
	_, _, err = to.(*net.UnixConn).WriteMsgUnix([]byte{1}, unix.UnixRights(int(file.Fd())), nil)
	return err
}

func take(address string, waiting func()) (net.Conn, error) {
	l, err := net.Listen("unix", address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = l.Close() }()
	waiting()
	from, err := l.Accept()
	if err != nil {
		return nil, err
	}
	defer func() { _ = from.Close() }()
	rights := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := from.(*net.UnixConn).ReadMsgUnix(make([]byte, 1), rights)
	if err != nil {
		return nil, err
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil {
		return nil, err
	}
	if len(messages) != 1 {
		return nil, fmt.Errorf("%d control messages", len(messages))
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fds[0]), "taken")
	defer func() { _ = file.Close() }()
	return net.FileConn(file)
}

// caller is an actor as a test sees it.
type caller struct {
	*harness.Conversation
	t *testing.T
}

// newCaller starts one in a control group, or where this process is if there is none.
func newCaller(t *testing.T, group string) *caller {
	t.Helper()
	return newCallerOf(t, os.Args[0], group)
}

// newStranger starts one of a program that no rule names.
func newStranger(t *testing.T) *caller {
	t.Helper()
	return newCallerOf(t, otherProgram(t), "")
}

// otherProgram is this one under another name.
func otherProgram(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "stranger")
	if err := os.Link(os.Args[0], program); err != nil {
		harness.Replace(t, program, read(t, os.Args[0]))
		if err := os.Chmod(program, 0o700); err != nil { //nolint:gosec // it is to run
			t.Fatal(err)
		}
	}
	return program
}

func newCallerOf(t *testing.T, program, group string) *caller {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestActor$")
	cmd.Path = program
	cmd.Env = append(os.Environ(), "PIPEGUARD_ACTOR=caller")
	c := &caller{harness.Converse(t, cmd), t}
	if group != "" {
		c.enter(group)
	}
	return c
}

// enter moves the process into a control group (cgroups(7)).
func (c *caller) enter(group string) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(c.PID())), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

func (c *caller) open(pipe string) {
	c.t.Helper()
	c.Say("open %s", pipe)
	if got := c.Hear(); got != "done" {
		c.t.Fatalf("open %s: %s", pipe, got)
	}
}

// call makes one call, whose path tells its record from others.
func (c *caller) call(path string) string {
	c.t.Helper()
	c.Say("call %s", path)
	return c.Hear()
}

// handTo gives this caller's connection to another, which has it as well from then on.
func (c *caller) handTo(other *caller) {
	c.t.Helper()
	address := filepath.Join(shortDir(c.t), "s")
	other.Say("take %s", address)
	if got := other.Hear(); got != "waiting" {
		c.t.Fatalf("take: %s", got)
	}
	c.Say("give %s", address)
	if got, taken := c.Hear(), other.Hear(); got != "done" || taken != "done" {
		c.t.Fatalf("give: %s; take: %s", got, taken)
	}
}

// shortDir has room for the name of a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "a")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// expect compares what a caller heard.
func expect(t *testing.T, got, code string, texts ...string) {
	t.Helper()
	if !strings.HasPrefix(got, code+" ") {
		t.Errorf("got %q, want %s", got, code)
	}
	for _, text := range texts {
		if !strings.Contains(got, text) {
			t.Errorf("%q does not say %q", got, text)
		}
	}
}

// ended is the terminal record of the call about a path.
func ended(t *testing.T, log, path string) audit.Event {
	t.Helper()
	for deadline := time.Now().Add(attackPatience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if found := records(t, log, func(e audit.Event) bool {
			return e.Outcome != nil && e.Type == audit.TypeRequest && slices.ContainsFunc(e.What.Targets, func(x audit.Target) bool { return x.Value == path })
		}); len(found) > 0 {
			return found[0]
		}
	}
	t.Fatalf("no record ends the call about %s in:\n%s", path, lines(t, log))
	return audit.Event{}
}

func records(t *testing.T, log string, match func(audit.Event) bool) (found []audit.Event) {
	t.Helper()
	for e, err := range recorded.Events(log) {
		if err != nil {
			t.Fatal(err)
		}
		if match(e) {
			found = append(found, e)
		}
	}
	return found
}
