package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/audit/report"
)

// logVerifier gives a page the verdict of "audit verify".
type logVerifier struct{ o evidence.VerifyOptions }

// Verify takes directories, each a log of its own, or files of one log.
func (v logVerifier) Verify(ctx context.Context, names []string) (report.Verdict, error) {
	directories := 0
	for _, name := range names {
		if name == "-" {
			return report.Verdict{}, errors.New("standard input is no log that can be verified: name the directory")
		}
		info, err := os.Stat(name)
		if err != nil {
			return report.Verdict{}, err
		}
		if info.IsDir() {
			directories++
		}
	}
	switch directories {
	case 0:
		v.o.Files = names
		r, err := evidence.Verify(ctx, v.o)
		return onPage(r, ""), err
	case len(names):
		return v.directories(ctx, names)
	}
	return report.Verdict{}, errors.New("directories and files are not verified together")
}

// directories verifies each and returns the worst verdict, with what is to be said of all.
func (v logVerifier) directories(ctx context.Context, names []string) (worst report.Verdict, err error) {
	order := []string{report.OK, report.Incomplete, report.Tampered}
	for _, name := range names {
		v.o.Dir = name
		r, err := evidence.Verify(ctx, v.o)
		if err != nil {
			return report.Verdict{}, err
		}
		prefix := ""
		if len(names) > 1 {
			prefix = name + ": "
		}
		this := onPage(r, prefix)
		if slices.Index(order, this.Status) > slices.Index(order, worst.Status) {
			worst.Status, worst.Summary, worst.Limits = this.Status, this.Summary, this.Limits
		}
		worst.Details = append(worst.Details, this.Details...)
	}
	return worst, nil
}

// onPage puts the result of a verification into the words of a page.
func onPage(r evidence.Report, prefix string) report.Verdict {
	say := func(format string, args ...any) string { return prefix + fmt.Sprintf(format, args...) }
	v := report.Verdict{Status: string(r.Verdict), Summary: prefix + verdictInWords(r) + ".", Limits: r.Limits}
	if r.Fault != nil {
		v.Details = append(v.Details, say("first place that does not fit, behind which nothing was looked at: %v", r.Fault))
	}
	for _, why := range r.Incomplete {
		v.Details = append(v.Details, say("%s", why))
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
