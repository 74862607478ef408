// Package keyscmd is "pipeguard keys": it makes and shows the keys of bundles, audit logs and witnesses.
package keyscmd

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/internal/atomicfile"
	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/audit/inert"
	"github.com/pipeguard/pipeguard/internal/bundle"
)

// NewCommand returns "pipeguard keys".
func NewCommand() *cobra.Command {
	return cli.Group("keys", "Make, replace and show the keys of bundles, audit logs and witnesses", `Bundles carry policies to nodes. They are signed with a private key (ES256, PEM, PKCS #8) that the controller has; nodes hold the
public half, and take nothing that another key has signed.
A log signs checkpoints with a private key (Ed25519, signed notes of golang.org/x/mod/sumdb/note) that its node has, and a witness cosigns
them with its own. The verifier key is what reviewers and witnesses need; keep it where those who can write to the log cannot change it.`,
		newGenerate(), newShow(),
	)
}

// What a key signs.
const (
	forBundle  = "bundle"
	forLog     = "log"
	forWitness = "witness"
)

func newGenerate() *cobra.Command {
	var purpose, name, old string
	cmd := &cobra.Command{
		Use:   "generate FILE --for bundle|log|witness [--name NAME] [--old FILE]",
		Short: "Make a key: FILE is the private half, FILE.pub the public one",
		Long: `Writes a new private key to FILE and its public half to FILE.pub, and prints its id or verifier key. No file may exist. FILE can be
read by its owner alone; on Windows it has the access list of its directory, so choose one that is private. The private key
is never printed. The holder of a bundle key can set the policy of every node that pins it.

A log's name is its origin: ` + evidence.OriginPrefix + `NODE, which is made of a name without a slash. A node makes the key of its log by itself at
its first start.

To replace a key of a log or a witness, name the file of verifier keys so far with --old: FILE.pub then holds the old keys and the
new one, and verifies the log from its beginning.

To replace a key of bundles, name the key in use, either half, with --old. FILE.both.pub then holds both public halves:
  1. Give FILE.both.pub to all nodes, and wait until each has it: they take both keys.
  2. Give FILE to the controller. It signs all bundles anew, under higher revisions.
  3. When every node runs such a revision, give FILE.pub to all nodes. The old key is worth nothing any more.

A key that may be compromised is revoked by step 3 alone, at once: until the nodes have bundles of the new key they permit
nothing, which is intended. A key that is lost, but not compromised, can wait: nodes go on until their
bundle ends, so begin with step 1 before it does.

Exit code: 0 made, 2 the command line is wrong, --old is no such key, or a file exists or cannot be written.`,
		Example: `  pipeguard keys generate bundle.key --for bundle
  kubectl -n pipeguard-system create secret generic pipeguard-bundle-key --from-file=key.pem=bundle.key
  pipeguard keys generate next.key --for bundle --old bundle.key
  pipeguard keys generate audit.key --for log --name node-1
  pipeguard keys generate audit-2.key --for log --name node-1 --old audit.key.pub
  pipeguard keys generate witness.key --for witness --name pipeguard.example.com/witness`,
		Args: cli.Argument("a file for the private key"),
	}
	cli.Text(cmd, &purpose, "for", "", "what the key signs: bundle, log or witness")
	cli.Text(cmd, &name, "name", "", "the node, or another name for the log; for a witness, a URL without a scheme")
	cli.Text(cmd, &old, "old", "", "the key in use (bundle), or the file of verifier keys that FILE.pub shall hold too (log, witness)")
	cli.Completes(cmd, "for", forBundle, forLog, forWitness)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		shown, err := generate(args[0], purpose, name, old)
		if err != nil {
			return cli.BadInput(err)
		}
		p := cli.NewPrinter(cmd.OutOrStdout())
		p.Printf("%s\n", inert.Line(shown))
		return p.Done(nil)
	}
	return cmd
}

// generate makes the files of a new key and returns what names it in public.
func generate(file, purpose, name, old string) (string, error) {
	switch {
	case purpose == forLog, purpose == forWitness:
		return makeAuditKey(file, name, old, purpose == forWitness)
	case purpose != forBundle:
		return "", errors.New("say what the key signs with --for: bundle, log or witness")
	case name != "":
		return "", errors.New("a key of bundles has no name: nodes know it by its id")
	}
	key, err := makeBundleKey(file, old)
	if err != nil {
		return "", err
	}
	return string(key.ID()), nil
}

// makeBundleKey writes a new key of bundles, and both public halves if it replaces an old one.
func makeBundleKey(file, old string) (*bundle.Key, error) {
	if old == "" {
		return makePair(file)
	}
	text, err := bundle.ReadKeyFile(old)
	if err != nil {
		return nil, err
	}
	if key, err := bundle.ParseKey(text); err == nil {
		text = key.PublicPEM()
	} else if keys, err := bundle.ParseKeys(text); err != nil {
		return nil, fmt.Errorf("%s: %w", old, err)
	} else if len(keys.IDs()) > 1 {
		return nil, fmt.Errorf("%s holds %d keys: name the one in use", old, len(keys.IDs()))
	}
	key, err := makePair(file)
	if err != nil {
		return nil, err
	}
	if err := writeNew(file+".both.pub", append(text, key.PublicPEM()...), 0o644); err != nil {
		return nil, errors.Join(err, os.Remove(file), os.Remove(file+".pub"))
	}
	return key, nil
}

// makePair writes both halves of a new key of bundles, or neither.
func makePair(file string) (*bundle.Key, error) {
	key, err := bundle.NewKey()
	if err != nil {
		return nil, err
	}
	private, err := key.PrivatePEM()
	if err != nil {
		return nil, err
	}
	if err := writeNew(file, private, 0o600); err != nil {
		return nil, err
	}
	if err := writeNew(file+".pub", key.PublicPEM(), 0o644); err != nil {
		return nil, errors.Join(err, os.Remove(file))
	}
	return key, nil
}

// writeNew writes a file that must not be there: a key that is overwritten is lost.
func writeNew(file string, text []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode) //nolint:gosec // the user names the file
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return atomicfile.Close(f, err)
}

// makeAuditKey writes both halves of a new key of a log or a witness, or neither, and returns the verifier key.
func makeAuditKey(file, name, old string, isWitness bool) (string, error) {
	if name == "" {
		return "", errors.New("name the log or the witness with --name")
	}
	if strings.Contains(name, "://") {
		return "", fmt.Errorf("--name %q has a scheme: leave it out", name)
	}
	if !isWitness {
		name = evidence.Origin(name)
	}
	var lines []string
	if old != "" {
		keys, err := evidence.ReadKeys(old)
		if err != nil {
			return "", err
		}
		isReplaced := false
		for _, k := range keys.Describe() {
			lines = append(lines, k.Key)
			isReplaced = isReplaced || k.Name == name && (k.Kind == "witness") == isWitness
		}
		if !isReplaced {
			return "", fmt.Errorf("%s holds no key of %s: a key replaces those of its own name", old, name)
		}
	}
	key, err := evidence.NewKey(name)
	if err != nil {
		return "", err
	}
	line := key.LogKey()
	if isWitness {
		line = key.WitnessKey()
	}
	if err := evidence.WriteKey(file, key); err != nil {
		return "", err
	}
	if err := evidence.WriteKeys(file+".pub", append(lines, line)...); err != nil {
		return "", errors.Join(err, os.Remove(file))
	}
	return line, nil
}

// keyReport is the JSON form of one key; its fields are promised to users.
type keyReport struct {
	File string `json:"file"`
	Kind string `json:"kind"` // private or public
	For  string `json:"for"`  // bundle, log or witness
	ID   string `json:"id"`
	Name string `json:"name,omitempty"` // of a log or a witness
	Key  string `json:"key,omitempty"`  // verifier key of a log or a witness
}

func newShow() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show FILE...",
		Short: "Print the ids and verifier keys in files of keys",
		Long: `Prints a line for each key of each file: what it signs, private or public, its id, the file, and of a log or a witness name and verifier key.
A private key itself is never printed. Of a private key of a log or a witness both verifier keys are printed, since it could be either's.

With -o json it prints one object: schema "pipeguard.dev/keys/v1", keys [{file, kind, for, id, name, key}].

Exit code: 0 all files hold keys, 2 one does not, or others can read the private key of a log.`,
		Args: cli.Arguments("a file of keys"),
	}
	out := cli.AddFormat(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		keys := []keyReport{}
		for _, file := range args {
			found, err := keysIn(file)
			if err != nil {
				return cli.BadInput(fmt.Errorf("%s: %w", file, err))
			}
			keys = append(keys, found...)
		}
		return out.Print(cmd, map[string]any{"schema": "pipeguard.dev/keys/v1", "keys": keys}, func(p *cli.Printer) {
			for _, k := range keys {
				p.Printf("%-7s  %-7s  %s  %s", k.For, k.Kind, k.ID, inert.Line(k.File))
				if k.Key != "" {
					p.Printf("  %s  %s", inert.Line(k.Name), inert.Line(k.Key))
				}
				p.Printf("\n")
			}
		}).Done(nil)
	}
	return cmd
}

// keysIn reads a file of any of the keys: those of bundles are PEM, those of logs and witnesses lines.
func keysIn(file string) ([]keyReport, error) {
	text, err := bundle.ReadKeyFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err != nil || !bytes.Contains(text, []byte("-----BEGIN ")) {
		return auditKeysIn(file)
	}
	if key, err := bundle.ParseKey(text); err == nil {
		return []keyReport{{File: file, Kind: "private", For: forBundle, ID: string(key.ID())}}, nil
	}
	keys, err := bundle.ParseKeys(text)
	if err != nil {
		return nil, err
	}
	var out []keyReport
	for _, id := range keys.IDs() {
		out = append(out, keyReport{File: file, Kind: "public", For: forBundle, ID: string(id)})
	}
	return out, nil
}

func auditKeysIn(file string) (out []keyReport, err error) {
	kind := "public"
	keys, err := evidence.ReadKeys(file)
	if err != nil {
		key, keyErr := evidence.ReadKey(file)
		if keyErr != nil {
			return nil, errors.Join(err, keyErr)
		}
		kind = "private"
		if keys, err = evidence.ParseKeys(key.LogKey() + "\n" + key.WitnessKey()); err != nil {
			return nil, err
		}
	}
	for _, k := range keys.Describe() {
		out = append(out, keyReport{File: file, Kind: kind, For: k.Kind, ID: k.Hash, Name: k.Name, Key: k.Key})
	}
	return out, nil
}
