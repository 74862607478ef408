//go:build !windows

package skew

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pipeguard/pipeguard/test/harness"
)

// before is the last commit of the release before this one. With each release it becomes that release's.
const before = "ea48ebe2aa66f0541a7e4e0ac6ede0a8dfd72598"

// release is the programs and files of a release.
type release struct {
	name string // for messages
	// files is a checkout, or as much of one as tests read.
	files string
	// programs is the directory of webhook, proxy and pipeguard.
	programs string
}

func (r release) program(name string) string { return filepath.Join(r.programs, name) }
func (r release) file(path ...string) string {
	return filepath.Join(append([]string{r.files}, path...)...)
}

// read is the text of a file of the release.
func (r release) read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(r.file(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// run runs one of the release's programs to its end.
func (r release) run(t *testing.T, program string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	stdout, stderr, code, err := harness.Run(exec.CommandContext(t.Context(), r.program(program), args...))
	if err != nil {
		t.Fatal(err)
	}
	return stdout, stderr, code
}

// mustRun runs one that has to end with exit code 0, and returns its standard output.
func (r release) mustRun(t *testing.T, program string, args ...string) string {
	t.Helper()
	stdout, stderr, code := r.run(t, program, args...)
	if code != 0 {
		t.Fatalf("%s %q of %s: exit code %d\n%s%s", program, args, r.name, code, stdout, stderr)
	}
	return stdout
}

// temporary is removed at the end of the run.
var temporary string

func TestMain(m *testing.M) {
	flag.Parse()
	log.SetLogger(logr.Discard()) // of controller-runtime's clients
	var err error
	if temporary, err = os.MkdirTemp("", "skew-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(temporary)
	os.Exit(code)
}

// missingError is why the release before cannot be built here.
type missingError struct{ err error }

func (e *missingError) Error() string { return e.err.Error() }

// releases are the release before and this one, in that order. A clone without the history of the first skips the test, except under CI.
func releases(t *testing.T) (old, now release) {
	t.Helper()
	both, err := built()
	if missing, ok := errors.AsType[*missingError](err); ok && os.Getenv("CI") != "true" {
		t.Skip("NOT TRIED WITH THE RELEASE BEFORE: ", missing)
	}
	if err != nil {
		t.Fatal(err)
	}
	return both[0], both[1]
}

var built = sync.OnceValues(func() (both [2]release, err error) {
	ctx := context.Background()
	if both[0], err = buildBefore(ctx); err != nil {
		return both, err
	}
	both[1] = release{name: "this release", files: harness.Root(), programs: filepath.Join(temporary, "now")}
	_, err = harness.Build(ctx, both[1].programs, "./cmd/webhook", "./cmd/proxy", "./cmd/pipeguard")
	return both, err
})

// buildBefore takes the release before from the history of this clone. Its programs are kept below bin, so that they are compiled once.
func buildBefore(ctx context.Context) (release, error) {
	r := release{
		name: "the release before", files: filepath.Join(temporary, "before"),
		programs: filepath.Join(harness.Root(), "bin", "releases", before+"-"+runtime.Version()),
	}
	if err := extract(ctx, r.files); err != nil {
		return r, err
	}
	if _, err := os.Stat(r.programs); err == nil {
		return r, nil
	}
	if err := os.MkdirAll(filepath.Dir(r.programs), 0o755); err != nil {
		return r, err
	}
	making, err := os.MkdirTemp(filepath.Dir(r.programs), "making-")
	if err != nil {
		return r, err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", making+"/", "./cmd/webhook", "./cmd/proxy", "./cmd/pipeguard")
	cmd.Dir = r.files
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return r, fmt.Errorf("build the release before, %s: %w\n%s", before, err, out)
	}
	// Half of a directory never has the name. Another run may have been quicker.
	if err := os.Rename(making, r.programs); err != nil {
		if _, exists := os.Stat(r.programs); exists != nil {
			return r, err
		}
		return r, os.RemoveAll(making)
	}
	return r, nil
}

// extract writes the files of the release before into a directory.
func extract(ctx context.Context, dir string) error {
	git := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, "git", append([]string{"-c", "safe.directory=*"}, args...)...)
		cmd.Dir = harness.Root()
		return cmd
	}
	if out, err := git("cat-file", "-e", before+"^{commit}").CombinedOutput(); err != nil {
		return &missingError{fmt.Errorf("this clone has no commit %s: fetch the whole history (git fetch --unshallow): %w %s", before, err, strings.TrimSpace(string(out)))}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	archive := filepath.Join(temporary, "before.tar")
	if out, err := git("archive", "--output="+archive, before).CombinedOutput(); err != nil {
		return fmt.Errorf("git archive: %w\n%s", err, out)
	}
	if out, err := exec.CommandContext(ctx, "tar", "-xf", archive, "-C", dir).CombinedOutput(); err != nil {
		return fmt.Errorf("tar: %w\n%s", err, out)
	}
	return nil
}

// pair is one release that makes something and one that reads it.
type pair struct{ makes, reads release }

// bothWays tries something with either release on either side.
func bothWays(t *testing.T, try func(t *testing.T, p pair)) {
	t.Helper()
	old, now := releases(t)
	for _, p := range []pair{{old, now}, {now, old}} {
		t.Run("of "+p.makes.name, func(t *testing.T) {
			t.Parallel()
			try(t, p)
		})
	}
}
