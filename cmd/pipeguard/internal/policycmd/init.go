package policycmd

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/starter"
	"github.com/pipeguard/pipeguard/internal/audit/inert"
	"github.com/pipeguard/pipeguard/policies"
	"github.com/pipeguard/pipeguard/policies/node"
)

func newInit() *cobra.Command {
	var isOfNode bool
	cmd := &cobra.Command{
		Use:   "init DIR",
		Short: "Write policies to begin with into an empty directory",
		Long: `Writes the built-in Rego modules with their tests, the example inputs under examples/ and the JSON schema of the
input (input.schema.json) into DIR, which is made if it does not exist. A directory with anything in it is left alone.

With --node it writes a rule of nodes and its test, to edit, and examples and schema of the input that the proxy asks its
request policy about. On a node, rules of one's own add to those that are built in; they do not replace them.

Exit code: 0 written, 2 not.`,
		Example: `  pipeguard policy init my-policies
  pipeguard policy init --node my-node-policies`,
		Args: cli.Argument("a new or empty directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if isOfNode {
				return initialize(cmd, args[0], starter.Node(), node.Examples(), node.InputSchema())
			}
			return initialize(cmd, args[0], policies.FS(), policies.Examples(), policies.InputSchema())
		},
	}
	cmd.Flags().BoolVar(&isOfNode, "node", false, "a rule of nodes instead of the policies of admission")
	return cmd
}

func initialize(cmd *cobra.Command, dir string, rules, examples fs.FS, schema []byte) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return cli.BadInput(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return cli.BadInput(err)
	}
	if len(entries) > 0 {
		return cli.BadInput(fmt.Errorf("%s is not empty: nothing written", dir))
	}
	if err := os.CopyFS(dir, rules); err != nil {
		return cli.BadInput(err)
	}
	if err := os.CopyFS(filepath.Join(dir, "examples"), examples); err != nil {
		return cli.BadInput(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "input.schema.json"), schema, 0o600); err != nil {
		return cli.BadInput(err)
	}
	p := cli.NewPrinter(cmd.OutOrStdout())
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			p.Printf("%s\n", inert.Line(path))
		}
		return err
	})
	return p.Done(err)
}
