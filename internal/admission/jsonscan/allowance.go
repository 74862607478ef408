package jsonscan

import "errors"

// ErrAllowance means that what is made of a text takes more memory than it may.
var ErrAllowance = errors.New("it takes more memory than it may")

// Allowance is how much memory, in bytes, may be taken by what is made of a text. Readers may share one.
type Allowance struct {
	left  int
	spent bool
}

// Allow returns an Allowance.
func Allow(bytes int) *Allowance { return &Allowance{left: bytes} }

// Take takes bytes, or returns ErrAllowance if there are fewer; then nothing can be taken any more.
func (a *Allowance) Take(bytes int) error {
	if a.spent = a.spent || bytes > a.left; a.spent {
		return ErrAllowance
	}
	a.left -= bytes
	return nil
}

// Spent reports whether something could not be taken.
func (a *Allowance) Spent() bool { return a.spent }

// Within has whatever the Reader makes taken from a: the length of each string, and what its caller takes. Without an Allowance there is
// no bound.
func (r *Reader) Within(a *Allowance) *Reader {
	r.allowance = a
	return r
}

// Take takes bytes of the Allowance for what the caller is about to make. If there are too few, that is the Reader's error.
func (r *Reader) Take(bytes int) {
	if r.allowance == nil || r.err != nil {
		return
	}
	if err := r.allowance.Take(bytes); err != nil {
		r.Failf("%w", err)
	}
}
