package harness

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Conversation is a process that a test gives commands: a line each, which it answers with a line.
type Conversation struct {
	*Process
	t     testing.TB
	in    io.WriteCloser
	heard int // bytes of its standard output
}

// Converse starts a program that calls Obey. It is killed when the test ends.
func Converse(t testing.TB, cmd *exec.Cmd) *Conversation {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p, err := Start(cmd.Path, cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return &Conversation{Process: p, t: t, in: in}
}

// Say sends a command.
func (c *Conversation) Say(format string, args ...any) {
	c.t.Helper()
	if _, err := fmt.Fprintf(c.in, format+"\n", args...); err != nil {
		c.t.Fatal(err)
	}
}

// Hear waits for the next line of the process.
func (c *Conversation) Hear() string {
	c.t.Helper()
	timeout, exited := time.After(patience), false
	for {
		text, changed := c.Stdout.next(c.heard)
		if line, _, isWhole := bytes.Cut(text, []byte("\n")); isWhole {
			c.heard += len(line) + 1
			return string(line)
		}
		if exited {
			c.t.Fatalf("the process has ended:\n%s", c.Stderr.String())
		}
		select {
		case <-changed:
		case <-c.Exited(): // what it wrote before is there now
			exited = true
		case <-timeout:
			c.t.Fatalf("the process does not answer:\n%s", c.Stderr.String())
		}
	}
}

// Ask sends a command and returns the answer.
func (c *Conversation) Ask(format string, args ...any) string {
	c.t.Helper()
	c.Say(format, args...)
	return c.Hear()
}

// End closes the standard input of the process, and fails the test unless the process ends with exit code 0.
func (c *Conversation) End() {
	c.t.Helper()
	_ = c.in.Close()
	if err := c.Wait(); err != nil {
		c.t.Errorf("%s: %v\n%s", c.Name, err, c.Stderr.String())
	}
}

// Obey is the other side: it hands each line of in to do, as a verb and the rest, and writes the answer to out, until in ends.
func Obey(in io.Reader, out io.Writer, do func(verb, rest string) (string, error)) {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		verb, rest, _ := strings.Cut(lines.Text(), " ")
		answer, err := do(verb, rest)
		if err != nil {
			answer = "fault: " + err.Error()
		}
		_, _ = fmt.Fprintln(out, strings.ReplaceAll(answer, "\n", " "))
	}
}
