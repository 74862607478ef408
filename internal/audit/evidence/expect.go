package evidence

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// expected is a checkpoint that the records must fit.
type expected struct {
	Checkpoint
	file      string
	line      int
	isOutside bool
}

// maxExpected bounds the memory for checkpoints: the last day of a log has 86,400, a year of hours 8,760.
const maxExpected = 1_000_000

// collect reads the checkpoints beside the log and those that were held elsewhere, by size.
func (v *verification) collect() error {
	if v.own != "" {
		if err := v.ownCheckpoints(); err != nil {
			return err
		}
	}
	for _, file := range v.o.Outside {
		if err := v.outsideCheckpoints(file); err != nil {
			return err
		}
	}
	slices.SortStableFunc(v.expect, func(a, b expected) int { return cmp.Compare(a.Size, b.Size) })
	return nil
}

// ownCheckpoints reads the file beside the log. It is the log's own, so what is wrong in it is a fault of the log.
func (v *verification) ownCheckpoints() error {
	f, _, err := openRegular(v.own)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read
	if len(v.o.Keys.all) == 0 {
		return nil
	}
	unknown, last := "", uint64(0)
	for n, err := range Notes(f) {
		var bad *NoteError
		switch {
		case errors.As(err, &bad) && bad.Torn, n.IsOpen:
			v.report.incomplete("the file of checkpoints ends within one: it is being written, or was cut off")
			return nil
		case errors.As(err, &bad):
			return &Fault{v.own, bad.Line, 0, bad.Err.Error()}
		}
		c, err := v.o.Keys.Open(n.Raw)
		switch {
		case errors.Is(err, ErrUnsigned):
			if unknown == "" {
				unknown = fmt.Sprintf("line %d: %v", n.Line, err)
				v.report.incomplete("a checkpoint beside the log cannot be verified, %s", unknown)
			}
			continue
		case err != nil:
			return &Fault{v.own, n.Line, 0, err.Error()}
		case !c.LogSigned || c.SignedAt.IsZero():
			return &Fault{v.own, n.Line, c.Size, "the log did not sign the checkpoint and its time"}
		case c.Size < last:
			return &Fault{v.own, n.Line, c.Size, fmt.Sprintf("a checkpoint of %d records behind one of %d", c.Size, last)}
		}
		last = c.Size
		if err := v.origin(c.Origin); err != nil {
			return &Fault{v.own, n.Line, c.Size, err.Error()}
		}
		if err := v.add(expected{c, v.own, n.Line, false}); err != nil {
			return err
		}
	}
	return nil
}

// outsideCheckpoints reads a file that was held elsewhere. It may hold checkpoints of other logs; one that cannot be verified ends the verification,
// since whoever gave it wanted to rely on it.
func (v *verification) outsideCheckpoints(file string) error {
	f, err := os.Open(file) // #nosec G304 -- the operator names it
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read
	used := 0
	for n, err := range Notes(f) {
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		head, err := Inspect(n.Raw)
		if err != nil {
			return fmt.Errorf("%s line %d: %w", file, n.Line, err)
		}
		if v.report.Origin == "" && v.onlyOrigin() != "" {
			v.report.Origin = v.onlyOrigin()
		}
		if v.report.Origin != "" && head.Origin != v.report.Origin {
			continue
		}
		c, err := v.o.Keys.Open(n.Raw)
		if err != nil {
			return fmt.Errorf("%s line %d: %w", file, n.Line, err)
		}
		if v.o.RequireWitness && len(c.Witnesses) == 0 {
			continue
		}
		used++
		if err := v.origin(c.Origin); err != nil {
			return fmt.Errorf("%s line %d: %w", file, n.Line, err)
		}
		if err := v.add(expected{c, file, n.Line, true}); err != nil {
			return err
		}
	}
	if used == 0 {
		which := "this log"
		if v.report.Origin != "" {
			which = v.report.Origin
		}
		if v.o.RequireWitness {
			which += " with the cosignature of a witness among the keys"
		}
		return fmt.Errorf("%s holds no checkpoint of %s", file, which)
	}
	return nil
}

// onlyOrigin is the log whose keys were given, if they are of one.
func (v *verification) onlyOrigin() string {
	if o := v.o.Keys.Origins(); len(o) == 1 {
		return o[0]
	}
	return ""
}

// origin holds every checkpoint to the same log.
func (v *verification) origin(name string) error {
	if v.report.Origin == "" {
		v.report.Origin = name
	}
	if name != v.report.Origin {
		return fmt.Errorf("the checkpoint is of log %q, and not of %q", name, v.report.Origin)
	}
	return nil
}

func (v *verification) add(e expected) error {
	if len(v.expect) >= maxExpected {
		return fmt.Errorf("%s: more than %d checkpoints", e.file, maxExpected)
	}
	if !v.keepRaw {
		e.Raw = nil // it has been verified
	}
	if n := len(v.expect); n > 0 {
		if l := &v.expect[n-1]; l.Head == e.Head && l.isOutside == e.isOutside { // an idle log signs the same head every minute
			l.Witnesses = append(l.Witnesses, e.Witnesses...)
			if e.SignedAt.After(l.SignedAt) {
				l.SignedAt = e.SignedAt
			}
			return nil
		}
	}
	e.Origin = strings.Clone(e.Origin)
	v.expect = append(v.expect, e)
	return nil
}
