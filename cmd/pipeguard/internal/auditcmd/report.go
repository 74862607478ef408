package auditcmd

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/internal/atomicfile"
	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/audit/query"
	"github.com/pipeguard/pipeguard/internal/audit/report"
	"github.com/pipeguard/pipeguard/internal/version"
)

func newReport() *cobra.Command {
	var file string
	var overwrites bool
	cmd := &cobra.Command{
		Use:   "report LOG... -o FILE",
		Short: "Write an HTML page about audit records",
		Long: `Writes one HTML file that any browser shows: whether the log can be trusted, how many calls there were when, what was denied to whom and why, operations
whose end is not known, revisions of policies, failures, callers, and where the log was opened. Each row has its record. The page
has no script and asks the network for nothing. It is as confidential as the log. It is not written into the directory of a log.

` + aboutLogs + `

` + aboutFilters + `

The verdict is that of "pipeguard audit verify" with the same --keys and --checkpoint, about the very bytes that the page is made from, and about the
whole log, whatever the filters leave out; of several directories it is the worst.

Exit code: 0 written, 1 written, and the log was changed, 2 it could not be verified or written, 3 lines are not records or records are missing (the page
says so too).`,
		Example: `  pipeguard audit report copy/ -o report.html --since 7d --keys node-1.pub --checkpoint from-witness`,
		Args:    logs,
	}
	filter := addFilter(cmd)
	trust := addTrust(cmd)
	cli.Text(cmd, &file, "output", "o", "file to write; - is standard output")
	cmd.Flags().BoolVar(&overwrites, "overwrite", false, "replace the file if it is there")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if file == "" {
			return cli.BadInput(errors.New("name the file to write with -o"))
		}
		now := time.Now()
		f, err := filter(now)
		if err != nil {
			return err
		}
		if file != "-" {
			if err := apart(file, slices.Concat(trust.keys, trust.o.Outside), args); err != nil {
				return cli.BadInput(err)
			}
		}
		source, unverified, err := forPage(cmd, trust, args)
		if err != nil {
			return err
		}
		in := trust.reading(cmd, f)
		in.source = source
		in.borrow(report.Parts, func(*audit.Event) bool { return true })
		in.warn()
		summary, err := report.Collect(in.fitting(untilStopped(cmd.Context(), source)))
		if err != nil {
			return cli.BadInput(err)
		}
		verdict := verdictOf(source, unverified)
		about := report.About{Names: args, Made: now, Filter: given(cmd), Doubts: in.doubts(), Version: version.Number()}
		if err := writePage(cmd, file, overwrites, summary, about, verdict); err != nil {
			return cli.BadInput(fmt.Errorf("write output: %w", err))
		}
		return in.reported(verdict, summary.Bad(), unverified == nil || !trust.isAsked())
	}
	return cmd
}

// reported is how a page that was written ends. What was read may be another log than the one that was verified.
func (r *reading) reported(verdict report.Verdict, bad int, tells bool) error {
	isChanged := tells && r.tell()
	switch {
	case verdict.Status == report.Tampered:
		return cli.No(errors.New("the log was changed; the page says where"))
	case isChanged:
		return cli.No(errors.New("the log was changed while it was read"))
	case verdict.Status == report.Unverified && r.trust.isAsked():
		return cli.BadInput(fmt.Errorf("the log could not be verified, as the page says: %s", strings.Join(verdict.Details, "; ")))
	case bad > 0:
		return cli.Incomplete(fmt.Errorf("%d lines are no records, or places where records are missing; the page names them", bad))
	}
	return nil
}

// given returns the filters of the command line, to be printed on the page.
func given(cmd *cobra.Command) string {
	var flags []string
	for _, name := range append([]string{"where"}, flagNames()...) {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed {
			flags = append(flags, "--"+name+" "+strings.Trim(f.Value.String(), "[]"))
		}
	}
	return strings.Join(flags, " ")
}

func flagNames() (names []string) {
	for _, f := range filterFlags {
		names = append(names, f.name)
	}
	return names
}

// apart refuses a page that would lie in the directory of a log, where each name may mean something, or that would replace what it is made from.
func apart(name string, others, logs []string) error {
	source, err := query.Find(logs)
	if err != nil {
		return err
	}
	read := slices.Concat(source.Files(), others)
	for _, dir := range source.Directories() {
		isWithin, err := evidence.IsWithin(filepath.Dir(name), dir)
		if err != nil {
			return err
		}
		if isWithin {
			return fmt.Errorf("%s would lie in the directory of the log: it is not written", name)
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			read = append(read, filepath.Join(dir, e.Name()))
		}
	}
	return cli.Replaceable(name, read)
}

// writePage replaces nothing unless it is told to: the file may be a log, named by mistake.
func writePage(cmd *cobra.Command, name string, overwrites bool, s *report.Summary, about report.About, v report.Verdict) error {
	page := func(out io.Writer) error { return write(out, s, about, v) }
	switch {
	case name == "-":
		return page(cmd.OutOrStdout())
	case overwrites:
		return atomicfile.Replace(name, 0o600, page)
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // the user names the file to write
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s is there already; --overwrite replaces it", name)
	}
	if err != nil {
		return err
	}
	return atomicfile.Close(f, page(f))
}

func write(out io.Writer, s *report.Summary, about report.About, v report.Verdict) error {
	buffered := bufio.NewWriter(out)
	if err := s.Write(buffered, about, v); err != nil {
		return err
	}
	return buffered.Flush()
}
