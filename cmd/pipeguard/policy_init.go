package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/plain"
	"github.com/pipeguard/pipeguard/policies"
)

func newPolicyInit() *cobra.Command {
	return &cobra.Command{
		Use:   "init DIR",
		Short: "Write the built-in policies into an empty directory, to edit them",
		Long: `Writes the built-in Rego modules with their tests, the example inputs under examples/ and the JSON schema of the
input (input.schema.json) into DIR, which is made if it does not exist. A directory with anything in it is left alone.

Exit code: 0 written, 2 not.`,
		Args: argument("a new or empty directory"),
		RunE: func(cmd *cobra.Command, args []string) error { return policyInit(cmd, args[0]) },
	}
}

func policyInit(cmd *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return badInput(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return badInput(err)
	}
	if len(entries) > 0 {
		return badInput(fmt.Errorf("%s is not empty: nothing written", dir))
	}
	if err := os.CopyFS(dir, policies.FS()); err != nil {
		return badInput(err)
	}
	if err := os.CopyFS(filepath.Join(dir, "examples"), policies.Examples()); err != nil {
		return badInput(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "input.schema.json"), policies.InputSchema(), 0o600); err != nil {
		return badInput(err)
	}
	p := printer{w: cmd.OutOrStdout()}
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			p.printf("%s\n", plain.Line(path))
		}
		return err
	})
	return p.done(err)
}
