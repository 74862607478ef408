package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/internal/bundle"
)

func newKeys() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "Make, show and exchange the keys that bundles are signed with",
		Long: `Bundles carry policies to nodes. They are signed with a private key (ES256, PEM, PKCS #8) that the controller has;
nodes hold the public half, and take nothing that another key has signed.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return needsCommand(cmd) },
	}
	cmd.AddCommand(newKeysGenerate(), newKeysShow(), newKeysRotate())
	return cmd
}

func newKeysGenerate() *cobra.Command {
	return &cobra.Command{
		Use:   "generate FILE",
		Short: "Make a key: FILE is the private half, FILE.pub the public one",
		Long: `Writes a new private key to FILE and its public half to FILE.pub, and prints the key's id. Neither file may exist.
FILE can be read by its owner alone; on Windows it has the access list of its directory, so choose one that is private.
Whoever has FILE decides on every node that pins the key.

Example:
  pipeguard keys generate bundle.key
  kubectl -n pipeguard-system create secret generic pipeguard-bundle-key --from-file=key.pem=bundle.key

Exit code: 0 made, 2 a file exists or cannot be written.`,
		Args: argument("a file for the private key"),
		RunE: func(cmd *cobra.Command, args []string) error {
			key, err := makeKey(args[0])
			if err != nil {
				return badInput(err)
			}
			p := printer{w: cmd.OutOrStdout()}
			p.printf("%s\n", key.ID())
			return p.done(nil)
		},
	}
}

// makeKey writes both halves of a new key, or neither.
func makeKey(file string) (*bundle.Key, error) {
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
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(file))
	}
	return nil
}

// keyReport is the JSON form of one key; its fields are promised to users.
type keyReport struct {
	File string       `json:"file"`
	Kind string       `json:"kind"` // private or public
	ID   bundle.KeyID `json:"id"`
}

func newKeysShow() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show FILE...",
		Short: "Print the ids of the keys in files",
		Long: `Prints a line for each key of each file: its id, private or public, and the file. A private key itself is never printed.
With -o json it prints one object: schema "pipeguard.dev/keys/v1", keys [{file, kind, id}].

Exit code: 0 all files hold keys, 2 one does not.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return badInput(fmt.Errorf("name a file of keys"))
			}
			return nil
		},
	}
	out := addFormat(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		keys := []keyReport{}
		for _, file := range args {
			found, err := keysIn(file)
			if err != nil {
				return badInput(fmt.Errorf("%s: %w", file, err))
			}
			keys = append(keys, found...)
		}
		return out.print(cmd, map[string]any{"schema": "pipeguard.dev/keys/v1", "keys": keys}, func(p *printer) {
			for _, k := range keys {
				p.printf("%s  %-7s  %s\n", k.ID, k.Kind, k.File)
			}
		}).done(nil)
	}
	return cmd
}

func keysIn(file string) ([]keyReport, error) {
	text, err := bundle.ReadKeyFile(file)
	if err != nil {
		return nil, err
	}
	if key, err := bundle.ParseKey(text); err == nil {
		return []keyReport{{file, "private", key.ID()}}, nil
	}
	keys, err := bundle.ParseKeys(text)
	if err != nil {
		return nil, err
	}
	var out []keyReport
	for _, id := range keys.IDs() {
		out = append(out, keyReport{file, "public", id})
	}
	return out, nil
}

func newKeysRotate() *cobra.Command {
	return &cobra.Command{
		Use:   "rotate OLD NEW",
		Short: "Make the successor of a key, and the file that nodes pin in between",
		Long: `Writes a new private key to NEW, its public half to NEW.pub, and both public halves to NEW.both.pub. OLD is the key in use,
either half. No file may exist. Then:

  1. Give NEW.both.pub to all nodes, and wait until each has it: they take both keys.
  2. Give NEW to the controller. It signs all bundles anew, under higher revisions.
  3. When every node runs such a revision, give NEW.pub to all nodes. The old key is worth nothing any more.

A key that others may have is taken away by step 3 alone, at once: until the nodes have bundles of the new key they permit
nothing, and that is what is wanted. A key that is lost and that nobody else has can wait: nodes go on until their
bundle ends, so begin with step 1 before it does.

Exit code: 0 made, 2 OLD is no key, or a file exists or cannot be written.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return badInput(fmt.Errorf("name the key in use and a file for the new one"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			key, err := rotate(args[0], args[1])
			if err != nil {
				return badInput(err)
			}
			p := printer{w: cmd.OutOrStdout()}
			p.printf("%s\n", key.ID())
			return p.done(nil)
		},
	}
}

func rotate(old, file string) (*bundle.Key, error) {
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
	key, err := makeKey(file)
	if err != nil {
		return nil, err
	}
	if err := writeNew(file+".both.pub", append(text, key.PublicPEM()...), 0o644); err != nil {
		return nil, errors.Join(err, os.Remove(file), os.Remove(file+".pub"))
	}
	return key, nil
}
