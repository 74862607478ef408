package bundlecmd

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/internal/bundle"
	"github.com/pipeguard/pipeguard/internal/config"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/nodepolicy"
	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
)

func newVerify() *cobra.Command {
	var keys, pool string
	var minimum uint64
	var now time.Time
	cmd := &cobra.Command{
		Use:   "verify FILE --keys FILE --pool NAME",
		Short: "Say whether a node would take a bundle, and why not",
		Long: `Does what a node does: size, form, signature by one of the keys, pool, time, and then tries it: its access list must compile
and permit nothing to strangers, its Rego must add to the built-in request policy alone, pass its tests and hold what is
asked of every request policy. A node also compares the revision with those it has seen; --minimum-revision stands for them.

With -o json it prints one object:
  schema    "pipeguard.dev/bundle-report/v1"
  ok        true if a node would take it
  verified  true if one of the keys signed it
  reason    why not: size, archive, content, unsigned, key, signature, audience, expired, not-yet, rollback, self-test
  message   the same in words
  revision, minimumRevision, policyRevision, audience, key, issuedAt, expiresAt, policies, modules

Exit code: 0 a node would take it, 1 refused, 2 a file cannot be read.`,
		Example: `  pipeguard bundle verify bundle.tar.gz --keys bundle.key.pub --pool windows`,
		Args:    cli.Argument("a bundle"),
	}
	out := cli.AddFormat(cmd)
	cli.Text(cmd, &keys, "keys", "", "file of the public keys that nodes pin")
	cli.Text(cmd, &pool, "pool", "", "the node pool")
	cmd.Flags().Uint64Var(&minimum, "minimum-revision", 0, "oldest revision that is taken")
	addNow(cmd, &now, "the time to judge by")
	cli.Require(cmd, "keys", "pool")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		raw, pinned, err := readBundle(args[0], keys)
		if err != nil {
			return err
		}
		b, seal, err := pinned.Verify(raw)
		report := bundleReportOf(b, seal.Key, err == nil)
		if err == nil {
			err = b.Check(pool, orNow(now))
		}
		if err == nil && b.Revision < minimum {
			err = &bundle.Refusal{Reason: bundle.ReasonRollback, Err: fmt.Errorf("revision %d is older than %d", b.Revision, minimum)}
		}
		if err == nil {
			if _, err = Try(cmd.Context(), b, time.Now); err != nil {
				err = &bundle.Refusal{Reason: bundle.ReasonTest, Err: err}
			}
		}
		return report.with(err).print(cmd, out)
	}
	return cmd
}

func newShow() *cobra.Command {
	var keys string
	cmd := &cobra.Command{
		Use:   "show FILE",
		Short: "Print what a bundle says of itself",
		Long: `Prints revision, pool, times, key, policies and modules, of a bundle whose time may be over. Without --keys nothing of it
is verified, and that is said. With -o json it prints the object of "pipeguard bundle verify".

Exit code: 0 shown, 1 it is no bundle or not signed by one of the keys, 2 a file cannot be read.`,
		Args: cli.Argument("a bundle"),
	}
	out := cli.AddFormat(cmd)
	cli.Text(cmd, &keys, "keys", "", "file of public keys; the bundle must be signed by one of them")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		raw, pinned, err := readBundle(args[0], keys)
		if err != nil {
			return err
		}
		if keys != "" {
			b, seal, err := pinned.Verify(raw)
			return bundleReportOf(b, seal.Key, err == nil).with(err).print(cmd, out)
		}
		b, claimed, err := bundle.Inspect(raw)
		return bundleReportOf(b, claimed, false).with(err).print(cmd, out)
	}
	return cmd
}

// readBundle reads an archive, and public keys if a file of them is named. A bundle that is too large is left to the
// verifier to refuse.
func readBundle(file, keys string) ([]byte, bundle.Keys, error) {
	raw, err := bundle.ReadFile(file)
	if bundle.ReasonOf(err) == bundle.ReasonSize {
		raw, err = make([]byte, bundle.MaxCompressed+1), nil
	}
	if err != nil {
		return nil, bundle.Keys{}, cli.BadInput(err)
	}
	if keys == "" {
		return raw, bundle.Keys{}, nil
	}
	text, err := bundle.ReadKeyFile(keys)
	if err != nil {
		return nil, bundle.Keys{}, cli.BadInput(err)
	}
	pinned, err := bundle.ParseKeys(text)
	if err != nil {
		return nil, bundle.Keys{}, cli.BadInput(fmt.Errorf("%s: %w", keys, err))
	}
	return raw, pinned, nil
}

// bundleReportOf describes a bundle; the zero Bundle gives a report that describes none.
func bundleReportOf(b bundle.Bundle, key bundle.KeyID, verified bool) bundleReport {
	r := bundleReport{
		Schema: bundleReportSchema, Verified: verified, Revision: b.Revision, MinimumRevision: b.MinimumRevision, PolicyRevision: b.PolicyRevision,
		Audience: b.Audience, Key: key, IssuedAt: b.IssuedAt, ExpiresAt: b.ExpiresAt, Modules: slices.Sorted(maps.Keys(b.Modules)),
	}
	if d, err := access.ParseDocument(b.ACL); err == nil {
		for _, p := range d.Policies {
			r.Policies = append(r.Policies, p.Name)
		}
	}
	return r
}

func (r bundleReport) with(err error) bundleReport {
	if r.OK = err == nil; !r.OK {
		r.Reason, r.Message = bundle.ReasonOf(err), err.Error()
	}
	return r
}

// Try activates a bundle as a node does: its access list with the pipes of the node API, and its Rego with the built-in request policy.
func Try(ctx context.Context, b bundle.Bundle, now func() time.Time) (*nodepolicy.Live, error) {
	apis, err := apiserver.Load(apiserver.Groups()...)
	if err != nil {
		return nil, err
	}
	return nodepolicy.Try(ctx, nodepolicy.Options{
		Served: config.Proxy{}.Known(apis), Policy: nodepolicy.EngineOptions(policy.Options{BaseTested: true}), Now: now,
	}, b)
}
