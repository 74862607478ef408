package auditcmd

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/audit/query"
	"github.com/pipeguard/pipeguard/internal/audit/report"
)

// forPage opens the logs of a page, verified if they can be: a page says also what could not be verified, and why.
func forPage(cmd *cobra.Command, t *trust, names []string) (source *query.Source, unverified error, err error) {
	if err := readVerifierKeys(&t.o, t.keys); err != nil {
		return nil, nil, cli.BadInput(err)
	}
	found, err := query.Find(names)
	if err != nil {
		return nil, nil, cli.BadInput(err)
	}
	switch kinds := found.Kinds(); {
	case kinds.Streams > 0:
		unverified = errors.New("standard input, and files that are no segments, cannot be verified: name the directory")
	case kinds.Directories > 0 && kinds.Files > 0:
		unverified = errors.New("directories and files are not verified together")
	default:
		if source, err = t.verified(cmd.Context(), cmd, names); err == nil {
			return source, nil, nil
		}
		unverified = errors.Unwrap(err)
	}
	if source, err = query.Open(names, cmd.InOrStdin()); err != nil {
		return nil, nil, cli.BadInput(err)
	}
	return source, unverified, nil
}

// verdictOf returns the worst verdict of "audit verify" on the bytes that were read for a page, with the details of all logs.
func verdictOf(source *query.Source, unverified error) (worst report.Verdict) {
	if unverified != nil {
		return report.Judge(worst, unverified)
	}
	order := []string{report.OK, report.Incomplete, report.Unverified, report.Tampered}
	for _, l := range source.Logs() {
		prefix := ""
		if len(source.Logs()) > 1 {
			prefix = strings.Join(l.Names, ", ") + ": "
		}
		this := onPage(*l.Report, prefix)
		if s := l.Standing(); l.Report.Fault == nil && s.Why == query.NotTheSame {
			this.Status, this.Summary = report.Unverified, prefix+s.Why
		}
		if slices.Index(order, this.Status) > slices.Index(order, worst.Status) {
			worst.Status, worst.Summary, worst.Limits = this.Status, this.Summary, this.Limits
		}
		worst.Details = append(worst.Details, this.Details...)
	}
	return report.Judge(worst, nil)
}

// onPage turns the result of a verification into the verdict on a page.
func onPage(r evidence.Report, prefix string) report.Verdict {
	say := func(format string, args ...any) string { return prefix + fmt.Sprintf(format, args...) }
	v := report.Verdict{Status: string(r.Verdict), Summary: prefix + verdictInWords(r) + ".", Limits: r.Limits}
	if r.Fault != nil {
		v.Details = append(v.Details, say("first place that does not fit, behind which nothing was looked at: %v", r.Fault))
	}
	for _, why := range r.Incomplete {
		v.Details = append(v.Details, say("%s", why))
	}
	for _, text := range signedOverrulings(r) {
		v.Details = append(v.Details, say("%s", text))
	}
	if r.Origin != "" {
		v.Details = append(v.Details, say("log %s", r.Origin))
	}
	v.Details = append(v.Details,
		say("records %d to %d; segments %d; bytes %d", r.FirstSeq, r.LastSeq, r.Segments, r.Bytes),
		say("checkpoints that fit: %d; own up to record %d, from outside up to record %d", r.Checkpoints, r.OwnCovered, r.OutsideCovered))
	if r.Witnessed > 0 {
		v.Details = append(v.Details, say("witnessed up to record %d, at %s", r.Witnessed, r.WitnessedAt.Format("2006-01-02 15:04:05 UTC")))
	}
	if r.Root != "" {
		v.Details = append(v.Details, say("root %s", r.Root))
	}
	return v
}
