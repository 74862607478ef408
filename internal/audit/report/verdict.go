package report

import "context"

// Verdict is what a verification of the log found. It stands first on the page.
type Verdict struct {
	Status  string   // one of the constants below; anything else is shown as Tampered
	Summary string   // one sentence
	Details []string // what was checked and found
	Limits  []string // what cannot be found out this way
}

// States of a Verdict.
const (
	OK         = "ok"         // the log is whole and unchanged up to its last checkpoint
	Incomplete = "incomplete" // nothing speaks against it, but not all of it is covered
	Tampered   = "tampered"   // it was changed, cut or put together
	Unverified = "unverified" // no verification took place
)

// Verifier verifies a log before it is told.
type Verifier interface {
	// Verify looks at files and directories as they were named. An error means that it could not, and becomes part of the page.
	Verify(ctx context.Context, names []string) (Verdict, error)
}

// Judge asks a Verifier, which may be nil.
func Judge(ctx context.Context, v Verifier, names []string) Verdict {
	if v == nil {
		return Verdict{Status: Unverified, Summary: "This log was not verified: nothing below is proven."}
	}
	verdict, err := v.Verify(ctx, names)
	if err != nil {
		return Verdict{Status: Unverified, Summary: "This log could not be verified: nothing below is proven.", Details: []string{err.Error()}}
	}
	switch verdict.Status {
	case OK, Incomplete, Tampered, Unverified:
	default:
		verdict.Status = Tampered
	}
	return verdict
}
