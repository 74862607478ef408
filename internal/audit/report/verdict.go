package report

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
	Unverified = "unverified" // it could not be verified
)

// Judge returns the verdict of a verification as a page shows it: Unverified if the verification failed, and Tampered if its status is not known.
func Judge(v Verdict, err error) Verdict {
	if err != nil {
		return Verdict{Status: Unverified, Summary: "This log could not be verified: nothing below is proven.", Details: []string{err.Error()}}
	}
	switch v.Status {
	case OK, Incomplete, Tampered, Unverified:
	default:
		v.Status = Tampered
	}
	return v
}
