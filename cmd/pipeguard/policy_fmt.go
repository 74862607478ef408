package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/internal/audit/inert"
	"github.com/pipeguard/pipeguard/internal/policy"
)

func newPolicyFmt() *cobra.Command {
	var isWrite, isDiff bool
	cmd := &cobra.Command{
		Use:   "fmt DIR",
		Short: "Format Rego as OPA does",
		Long: `Names each module of DIR that is not formatted as OPA formats it.

Exit code: 0 all formatted (or made so by --write), 1 some are not, 2 a module cannot be parsed, read or written.
If one module cannot be parsed, nothing is written.`,
		Args: argument("a directory of policies"),
		RunE: func(cmd *cobra.Command, args []string) error { return policyFmt(cmd, args[0], isWrite, isDiff) },
	}
	cmd.Flags().BoolVarP(&isWrite, "write", "w", false, "write the formatted text back")
	cmd.Flags().BoolVarP(&isDiff, "diff", "d", false, "print the difference as a unified diff")
	return cmd
}

func policyFmt(cmd *cobra.Command, dir string, isWrite, isDiff bool) error {
	modules, err := loadModules(dir)
	if err != nil {
		return badInput(err)
	}
	changed := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(modules.Files)) {
		formatted, err := policy.Format(name, []byte(modules.Files[name]))
		if err != nil {
			return badInput(err)
		}
		if string(formatted) != modules.Files[name] {
			changed[name] = string(formatted)
		}
	}
	p := newPrinter(cmd.OutOrStdout())
	for _, name := range slices.Sorted(maps.Keys(changed)) {
		if isDiff {
			p.printf("%s", inert.Text(lineDiff(name, modules.Files[name], changed[name])))
		} else {
			p.printf("%s\n", inert.Line(name))
		}
		if isWrite {
			if err := overwrite(filepath.Join(dir, filepath.FromSlash(name)), changed[name]); err != nil {
				return badInput(fmt.Errorf("write formatted module: %w", err))
			}
		}
	}
	return p.answer(len(changed) == 0 || isWrite)
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
	return replaceFile(target, info.Mode().Perm(), func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}
