package reviewcmd

import (
	"context"
	"io"
	"testing"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/policycmd"
	"github.com/pipeguard/pipeguard/test/clitest"
)

type result = clitest.Result

// runCommand runs a command line of a program with the commands that the tests of this package need.
func runCommand(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	return cli.Run(ctx, cli.Group("pipeguard", "", "", NewCommand(&fakeCluster{}), policycmd.NewCommand()), args, in, out, errOut)
}

func execute(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	return clitest.Run(stdin, func(in io.Reader, out, errOut io.Writer) int { return runCommand(t.Context(), args, in, out, errOut) })
}
