package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/audit/inert"
)

func newAuditKeys() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "Make and show the keys that checkpoints of logs are signed with",
		Long: `A log signs checkpoints with a private key (Ed25519, signed notes of golang.org/x/mod/sumdb/note) that its node has. Its verifier key is what
reviewers and witnesses need; keep it where nobody who can write to the log can change it.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return needsCommand(cmd) },
	}
	cmd.AddCommand(newAuditKeysGenerate(), newAuditKeysShow())
	return cmd
}

func newAuditKeysGenerate() *cobra.Command {
	var name, old string
	var isWitness bool
	cmd := &cobra.Command{
		Use:   "generate FILE --name NAME",
		Short: "Make a key: FILE is the private half, FILE.pub the verifier key",
		Long: `Writes a private key to FILE, which its owner alone can read, and its verifier key to FILE.pub; neither may exist. On Windows FILE has the access
list of its directory. The private key is never printed.

A log's name is its origin: ` + evidence.OriginPrefix + `NODE, which is made of a name without a slash. To rotate, name the file of verifier keys
so far with --old: FILE.pub then holds the old keys and the new one, and verifies the log from its beginning.

Exit code: 0 made, 3 a file exists or cannot be written.`,
		Example: `  pipeguard audit keys generate audit.key --name node-1
  pipeguard audit keys generate audit-2.key --name node-1 --old audit.key.pub
  pipeguard audit keys generate witness.key --witness --name pipeguard.example.com/witness`,
		Args: oneFileOfAnswer("a file for the private key"),
	}
	answersFlagErrors(cmd)
	cmd.Flags().StringVar(&name, "name", "", "the node, or another name for the log; for a witness, a URL without a scheme")
	cmd.Flags().StringVar(&old, "old", "", "file of verifier keys that FILE.pub shall hold too")
	cmd.Flags().BoolVar(&isWitness, "witness", false, "make the key of a witness")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		line, err := makeAuditKey(args[0], name, old, isWitness)
		if err != nil {
			return noAnswer(err)
		}
		p := printer{w: cmd.OutOrStdout()}
		p.printf("%s\n", inert.Line(line))
		if p.err != nil {
			return noAnswer(fmt.Errorf("write output: %w", p.err))
		}
		return nil
	}
	return cmd
}

// makeAuditKey writes both halves of a new key, or neither, and returns the verifier key.
func makeAuditKey(file, name, old string, isWitness bool) (string, error) {
	if name == "" {
		return "", errors.New("name the log or the witness with --name")
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

func newAuditKeysShow() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show FILE",
		Short: "Print verifier keys: of a file of them, or of a private key",
		Long: `Prints kind (log, witness), hash, name and verifier key of each. Of a private key both verifier keys are printed, since it could be
either's, and never itself.

With -o json: {"schema": "pipeguard.dev/audit-keys/v1", "keys": [{kind, name, hash, key}]}

Exit code: 0 shown, 3 it is no file of keys, or others can read the private key.`,
		Args: oneFileOfAnswer("a file of keys"),
	}
	answersFlagErrors(cmd)
	out := addFormat(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		keys, err := evidence.ReadKeys(args[0])
		if err != nil {
			key, keyErr := evidence.ReadKey(args[0])
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return noAnswer(err)
			case keyErr != nil:
				return noAnswer(errors.Join(err, keyErr))
			}
			if keys, err = evidence.ParseKeys(key.LogKey() + "\n" + key.WitnessKey()); err != nil {
				return noAnswer(err)
			}
		}
		p := out.print(cmd, map[string]any{"schema": "pipeguard.dev/audit-keys/v1", "keys": keys.Describe()}, func(p *printer) {
			for _, k := range keys.Describe() {
				p.printf("%-7s  %s  %s  %s\n", k.Kind, k.Hash, inert.Line(k.Name), inert.Line(k.Key))
			}
		})
		if p.err != nil {
			return noAnswer(fmt.Errorf("write output: %w", p.err))
		}
		return nil
	}
	return cmd
}

func oneFileOfAnswer(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return noAnswer(fmt.Errorf("name %s: %s", what, cmd.UseLine()))
		}
		return nil
	}
}
