package policycmd

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/policysource"
	"github.com/pipeguard/pipeguard/internal/atomicfile"
	"github.com/pipeguard/pipeguard/internal/audit/inert"
	"github.com/pipeguard/pipeguard/internal/policy"
)

func newFmt() *cobra.Command {
	var isWrite, isDiff bool
	cmd := &cobra.Command{
		Use:   "fmt DIR",
		Short: "Format Rego as OPA does",
		Long: `Names each module of DIR that is not formatted as OPA formats it.

Exit code: 0 all formatted (or made so by --write), 1 some are not, 2 a module cannot be parsed, read or written.
If one module cannot be parsed, nothing is written.`,
		Args: cli.Argument("a directory of policies"),
		RunE: func(cmd *cobra.Command, args []string) error { return format(cmd, args[0], isWrite, isDiff) },
	}
	cmd.Flags().BoolVarP(&isWrite, "write", "w", false, "write the formatted text back")
	cmd.Flags().BoolVarP(&isDiff, "diff", "d", false, "print the difference as a unified diff")
	return cmd
}

func format(cmd *cobra.Command, dir string, isWrite, isDiff bool) error {
	modules, err := policysource.LoadModules(dir)
	if err != nil {
		return cli.BadInput(err)
	}
	changed := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(modules.Files)) {
		formatted, err := policy.Format(name, []byte(modules.Files[name]))
		if err != nil {
			return cli.BadInput(err)
		}
		if string(formatted) != modules.Files[name] {
			changed[name] = string(formatted)
		}
	}
	p := cli.NewPrinter(cmd.OutOrStdout())
	for _, name := range slices.Sorted(maps.Keys(changed)) {
		if isDiff {
			p.Printf("%s", inert.Text(lineDiff(name, modules.Files[name], changed[name])))
		} else {
			p.Printf("%s\n", inert.Line(name))
		}
		if isWrite {
			if err := overwrite(filepath.Join(dir, filepath.FromSlash(name)), changed[name]); err != nil {
				return cli.BadInput(fmt.Errorf("write formatted module: %w", err))
			}
		}
	}
	return p.Answer(len(changed) == 0 || isWrite)
}

// overwrite replaces a file by rename, so that neither an interrupted run nor a webhook that
// watches the directory meets half a module. A link stays a link: what it points to is replaced.
func overwrite(name, text string) error {
	target, err := filepath.EvalSymlinks(name)
	if err != nil {
		return err
	}
	info, err := os.Stat(target)
	if err != nil {
		return err
	}
	return atomicfile.Replace(target, info.Mode().Perm(), func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}
