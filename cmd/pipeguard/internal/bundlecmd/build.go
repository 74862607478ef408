package bundlecmd

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/manifest"
	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/policysource"
	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/atomicfile"
	"github.com/pipeguard/pipeguard/internal/bundle"
	"github.com/pipeguard/pipeguard/internal/policyset"
)

// buildFlags are those of "bundle build".
type buildFlags struct {
	key, pool, rego, out string
	params               string
	policyRevision       string
	policies             []string
	revision, minimum    uint64
	life                 time.Duration
	now                  time.Time
}

func newBuild() *cobra.Command {
	var f buildFlags
	cmd := &cobra.Command{
		Use:   "build --key FILE --pool NAME --policies FILE --out FILE",
		Short: "Build and sign a bundle of PipePolicies",
		Long: `Reads PipePolicy objects as a cluster would take them, and those of a parameters file, and writes a signed bundle. Equal input gives equal bytes, so name
--now and --revision where builds are compared. Without --revision it is the time in seconds since 1970: it rises by itself.
One that is more than a year ahead of that is refused, here and by nodes.
A node takes no revision twice with another content, and none that is older than one it has seen.
Whether nodes would take it is the question of "pipeguard bundle verify".

Exit code: 0 built, 1 the objects are unfit or too large for a bundle, 2 a file cannot be read or written.`,
		Example: `  pipeguard bundle build --key bundle.key --pool windows --policies policies/ --expires 168h --out bundle.tar.gz`,
		Args:    cli.NoArguments("; policies are named with --policies"),
		RunE:    func(cmd *cobra.Command, _ []string) error { return build(cmd, f) },
	}
	cli.Text(cmd, &f.key, "key", "", "file of the private key, as made by \"pipeguard keys generate\"")
	cli.Text(cmd, &f.pool, "pool", "", "the node pool that the bundle is for; nodes of others refuse it")
	cmd.Flags().StringArrayVar(&f.policies, "policies", nil, "file, directory or - with PipePolicy objects; may be repeated")
	cli.Text(cmd, &f.params, "params", "", "parameters file (YAML) of the webhook, whose pipePolicies are added as parameters/NAME")
	cli.Text(cmd, &f.rego, "rego", "", "directory of Rego that adds to the request policy of nodes, with its tests")
	cmd.Flags().Uint64Var(&f.revision, "revision", 0, "revision, at most a year ahead of the seconds since 1970; without it, just these")
	cmd.Flags().Uint64Var(&f.minimum, "minimum-revision", 0, "oldest revision that nodes may still take after this one")
	cli.Text(cmd, &f.policyRevision, "policy-revision", "", "what admission calls these policies; nodes show it in refusals")
	cmd.Flags().DurationVar(&f.life, "expires", 7*24*time.Hour, "how long nodes may decide by it; then they permit nothing")
	addNow(cmd, &f.now, "when it was issued")
	cli.Text(cmd, &f.out, "out", "", "file to write; it is replaced if it is there")
	cmd.MarkFlagsOneRequired("policies", "params")
	cli.Require(cmd, "key", "pool", "out")
	return cmd
}

func build(cmd *cobra.Command, f buildFlags) error {
	text, err := bundle.ReadKeyFile(f.key)
	if err != nil {
		return cli.BadInput(err)
	}
	key, err := bundle.ParseKey(text)
	if err != nil {
		return cli.BadInput(fmt.Errorf("%s: %w", f.key, err))
	}
	var s policyset.Sources
	if err := policysource.ReadPolicies(&s, f.policies, cmd.InOrStdin()); err != nil {
		return cli.BadInput(err)
	}
	if len(s.PolicyModules) > 0 {
		return cli.BadInput(fmt.Errorf("policies: PolicyModules judge objects at admission; Rego for nodes is named with --rego"))
	}
	source := policyset.BundleSources{PipePolicies: s.PipePolicies, PolicyRevision: f.policyRevision}
	if f.params != "" {
		if source.Parameters, err = admission.LoadParameters(f.params, policyset.ReadPipePolicy); err != nil {
			return cli.BadInput(err)
		}
	}
	if len(source.PipePolicies)+len(source.Parameters.PipePolicies) == 0 {
		return cli.BadInput(errors.New("there are no PipePolicies: nodes that take such a bundle guard nothing by it"))
	}
	if f.rego != "" {
		modules, err := policysource.LoadModules(f.rego)
		if err != nil {
			return cli.BadInput(err)
		}
		source.Modules = modules.Files
	}
	b, err := source.Bundle()
	if err != nil {
		return cli.No(err)
	}
	b.Audience, b.Revision, b.MinimumRevision = f.pool, f.revision, f.minimum
	b.IssuedAt = orNow(f.now)
	if err := policysource.Warn(cmd, append(policysource.Warnings(s.PipePolicies, b.IssuedAt), source.Parameters.Warnings()...)); err != nil {
		return err
	}
	b.ExpiresAt = b.IssuedAt.Add(f.life)
	if b.Revision == 0 && !cmd.Flags().Changed("revision") {
		b.Revision = uint64(max(1, b.IssuedAt.Unix())) //nolint:gosec // positive
	}
	raw, err := bundle.Build(b, key)
	if err != nil {
		return cli.No(err)
	}
	if err := f.replaceable(); err != nil {
		return cli.BadInput(err)
	}
	if err := atomicfile.Replace(f.out, 0o644, func(out io.Writer) error { _, err := out.Write(raw); return err }); err != nil {
		return cli.BadInput(err)
	}
	p := cli.NewPrinter(cmd.OutOrStdout())
	p.Printf("revision %d for %s, until %s, signed by %s: %d bytes\n", b.Revision, b.Audience, b.ExpiresAt.UTC().Format(time.RFC3339), key.ID(), len(raw))
	return p.Done(nil)
}

// replaceable refuses a bundle in place of the key or of a policy.
func (f *buildFlags) replaceable() error {
	read := []string{f.key, f.params}
	for _, name := range f.policies {
		files, err := manifest.Files(name)
		if err != nil {
			return err
		}
		read = append(read, files...)
	}
	if f.rego != "" {
		err := filepath.WalkDir(f.rego, func(path string, _ fs.DirEntry, err error) error {
			read = append(read, path)
			return err
		})
		if err != nil {
			return err
		}
	}
	return cli.Replaceable(f.out, read)
}
