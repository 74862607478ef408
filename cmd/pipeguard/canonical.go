package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/internal/core/pipepath"
)

// canonicalLine is one line of output; its fields and their order are promised to users.
type canonicalLine struct {
	Input     string        `json:"input"`
	SubPath   *string       `json:"subPath"`
	Kind      pipepath.Kind `json:"kind"`
	Canonical string        `json:"canonical"`
	Match     bool          `json:"match"`
}

type canonicalOptions struct {
	subPath   string
	patterns  []string
	fromStdin bool
	isNUL     bool
}

func newCanonical() *cobra.Command {
	var o canonicalOptions
	cmd := &cobra.Command{
		Use:   "canonical [--subpath SUBPATH] [--pattern PATTERN]... PATH...",
		Short: "Say what Windows paths name and whether they are guarded pipes",
		Long: `Prints one line of JSON for each path, with these keys in this order:

  input      the path as given
  subPath    the subPath that was joined to it, or null
  kind       path, drive, pipe, pipe-root, ancestor, unc, unc-host, dos-device, nt-device, nt-other,
             malformed or malformed-dotdot
  canonical  the one spelling that all spellings of the same name share
  match      true if the path is a guarded pipe or cannot be proven not to be one

With a subPath the verdict is the stricter of the path's own and that of the two joined.
Characters that could act on a terminal come as \u escapes; bytes that are no UTF-8 as \ufffd.
Exit code: 0, also when a path matches; 2 if the command line or a pattern is wrong.`,
		Example: `  pipeguard canonical '\\.\pipe\csi-proxy-disk-v1' '//./PIPE/CSI-PROXY-DISK-V1'
  pipeguard canonical --subpath csi-proxy-disk-v1 '\\.\pipe'
  pipeguard canonical -- -odd-name
  find-host-paths | pipeguard canonical --stdin`,
		RunE: func(cmd *cobra.Command, args []string) error { return canonical(cmd, args, o) },
	}
	cmd.Flags().StringVar(&o.subPath, "subpath", "", "subPath of the volume mount, judged with every path")
	cmd.Flags().StringArrayVar(&o.patterns, "pattern", pipepath.DefaultPatterns(), "guarded pipe: a name, or the beginning of one and an asterisk; may be repeated")
	cmd.Flags().BoolVar(&o.fromStdin, "stdin", false, "read paths from standard input, one a line (an LF ends a line, a CR belongs to the path)")
	cmd.Flags().BoolVarP(&o.isNUL, "null", "0", false, "with --stdin: a NUL ends each path, not a line feed")
	return cmd
}

func canonical(cmd *cobra.Command, args []string, o canonicalOptions) error {
	switch {
	case o.isNUL && !o.fromStdin:
		return cli.BadInput(errors.New("--null needs --stdin"))
	case o.fromStdin && len(args) > 0:
		return cli.BadInput(errors.New("paths come either from --stdin or from the command line"))
	case !o.fromStdin && len(args) == 0:
		return cli.BadInput(errors.New("name at least one path"))
	}
	guard, err := pipepath.NewGuard(o.patterns...)
	if err != nil {
		return cli.BadInput(err)
	}
	p := cli.NewPrinter(cmd.OutOrStdout())
	if !o.fromStdin {
		for _, path := range args {
			p.JSONLine(o.judge(guard, path))
		}
		return p.Done(nil)
	}
	scanner := bufio.NewScanner(cmd.InOrStdin())
	scanner.Buffer(nil, maxPathLine)
	separator := byte('\n')
	if o.isNUL {
		separator = 0
	}
	scanner.Split(endingWith(separator))
	for scanner.Scan() && p.Err == nil {
		p.JSONLine(o.judge(guard, scanner.Text()))
	}
	if err := scanner.Err(); err != nil {
		return cli.BadInput(fmt.Errorf("read standard input: %w", err))
	}
	return p.Done(nil)
}

// maxPathLine bounds one path from standard input, in bytes. The API server takes no object over 3 MiB.
const maxPathLine = 4 << 20

func (o canonicalOptions) judge(guard *pipepath.Guard, path string) canonicalLine {
	line := canonicalLine{Input: path}
	verdict := guard.Judge(path)
	if o.subPath != "" {
		line.SubPath = &o.subPath
		verdict = guard.JudgeMount(path, o.subPath)
	}
	line.Kind, line.Canonical, line.Match = verdict.Kind, verdict.Canonical, verdict.Match
	return line
}

// endingWith cuts at a separator; unlike bufio.ScanLines it leaves a carriage return in the path.
func endingWith(separator byte) bufio.SplitFunc {
	return func(data []byte, atEOF bool) (int, []byte, error) {
		if i := bytes.IndexByte(data, separator); i >= 0 {
			return i + 1, data[:i], nil
		}
		if atEOF && len(data) > 0 {
			return len(data), data, nil
		}
		return 0, nil, nil
	}
}
