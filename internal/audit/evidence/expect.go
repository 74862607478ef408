package evidence

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// expected is a checkpoint that the records must match.
type expected struct {
	Checkpoint
	file      string
	line      int
	isOutside bool
}

// maxExpected bounds the memory for checkpoints: the last day of a log has 86,400, a year of hours 8,760.
const maxExpected = 1_000_000

// collect reads the checkpoints beside the log and those kept elsewhere, and sorts them by size.
func (v *verification) collect() error {
	v.beside = map[signed]bool{}
	if v.own != "" {
		if err := v.ownCheckpoints(); err != nil {
			return err
		}
	}
	if len(v.o.Outside) > 0 {
		if err := v.knowBeside(); err != nil {
			return err
		}
	}
	for _, file := range v.o.Outside {
		if err := v.outsideCheckpoints(file); err != nil {
			return err
		}
	}
	hasOwn := slices.ContainsFunc(v.expect, func(e expected) bool { return e.file == v.own && !e.isOutside })
	v.report.lacksOwn = v.o.Dir != "" && len(v.o.Keys.all) > 0 && !hasOwn && len(v.report.Incomplete) == 0
	slices.SortStableFunc(v.expect, func(a, b expected) int { return cmp.Compare(a.Size, b.Size) })
	v.retire()
	for _, e := range v.expect {
		if e.isOutside {
			v.report.newest = max(v.report.newest, e.Size)
		}
		v.report.cosignings.add(e)
	}
	return nil
}

// retire leaves out the checkpoints, sorted by size, that only a replaced key signed: those that follow a checkpoint by a later key. A replaced key may have
// leaked. Checkpoints of one size are judged together, because removing the line of one signature from a checkpoint needs no key.
func (v *verification) retire() {
	var newest, first expected // by the last key so far; the first that is left out
	newest.rank = v.o.After.rank
	out, left := v.expect[:0], 0
	for rest := v.expect; len(rest) > 0; {
		n, best := 1, rest[0]
		for ; n < len(rest) && rest[n].Size == best.Size; n++ {
			if rest[n].rank > best.rank {
				best = rest[n]
			}
		}
		switch {
		case best.rank >= newest.rank:
			if best.rank > newest.rank {
				newest = best
			}
			out = append(out, rest[:n]...)
		default:
			if left == 0 {
				first = best
			}
			left += n
		}
		rest = rest[n:]
	}
	v.expect = out
	if rank, hash := v.o.Keys.newest(v.report.Origin); newest.rank > 0 && newest.rank < rank { // the holder of a replaced key can cut the log back to before the rotation and extend it
		v.report.byKeys = append(v.report.byKeys, fmt.Sprintf("no checkpoint is signed by %s+%08x, the last key that is given: it has signed nothing yet, or its signatures were removed and a replaced key signed what is here", v.report.Origin, hash))
	}
	if left > 0 {
		v.report.byKeys = append(v.report.byKeys, fmt.Sprintf("%d checkpoints do not count, the first of them of %d records in %s line %d: only %s+%08x signed it, which %s+%08x had replaced at %d records. "+
			"The old key was used again, signatures of the new one were removed, or the keys were not given in the order in which they replaced each other",
			left, first.Size, first.file, first.line, first.Origin, first.by, newest.Origin, newest.by, newest.Size))
	}
}

// ownCheckpoints reads the checkpoint file of the log. It is part of the log, so a defect in it is a fault of the log.
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
			v.report.incomplete("the file of checkpoints ends in the middle of one: it is being written, or was cut off")
			return nil
		case errors.As(err, &bad):
			return &Fault{v.own, bad.Line, 0, bad.Err.Error()}
		}
		if head, err := Inspect(n.Raw); err == nil && !v.o.Again && head.Size <= v.o.After.Last() && head.Size > 0 { // it is not compared, so its signature does not count
			continue
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
		case c.SignedAt.IsZero():
			return &Fault{v.own, n.Line, c.Size, "the log did not sign the checkpoint's time"}
		case c.Size < last:
			return &Fault{v.own, n.Line, c.Size, fmt.Sprintf("a checkpoint of %d records comes after one of %d", c.Size, last)}
		}
		last = c.Size
		if len(v.o.Outside) > 0 {
			v.remember(c)
		}
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
// since it was given to be relied on. All of them must match the log, but they count as kept elsewhere only if the file is not one of the log's own. For
// files that lie apart from the log's own checkpoints only a cosignature shows that.
func (v *verification) outsideCheckpoints(file string) error {
	given, err := v.given(file)
	if err != nil {
		return err
	}
	why, err := v.ownFile(file, given)
	if err != nil {
		return err
	}
	isUntold := v.o.Dir == "" && !v.knowsOwn()
	needsWitness := v.o.RequireWitness || isUntold
	hasWitnessed := slices.ContainsFunc(given, func(e expected) bool { return len(e.Witnesses) > 0 })
	switch {
	case why != "":
		v.report.incomplete("%s does not count as held elsewhere: %s", file, why)
	case v.o.RequireWitness && !hasWitnessed:
		v.report.incomplete("%s does not count as held elsewhere: no witness among the keys cosigned a checkpoint in it", file)
	case isUntold && !hasWitnessed:
		v.report.incomplete("%s does not count as held elsewhere: no checkpoint of the log's own is here, so that it may be the log's own file; name the directory of the log, or its file %q among the files", file, CheckpointFile)
	}
	for _, e := range given {
		e.isOutside = why == "" && (!needsWitness || len(e.Witnesses) > 0)
		if err := v.add(e); err != nil {
			return err
		}
	}
	return nil
}

// given reads the checkpoints of the log in a file.
func (v *verification) given(file string) (found []expected, err error) {
	f, err := os.Open(file) // #nosec G304 -- the operator names it
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	for n, err := range Notes(f) {
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		head, err := Inspect(n.Raw)
		if err != nil {
			return nil, fmt.Errorf("%s line %d: %w", file, n.Line, err)
		}
		if v.report.Origin == "" && v.onlyOrigin() != "" {
			v.report.Origin = v.onlyOrigin()
		}
		if v.report.Origin != "" && head.Origin != v.report.Origin {
			if slices.Contains(strings.Fields(string(n.Raw)), v.report.Origin) {
				return nil, fmt.Errorf("%s line %d: a checkpoint of %q names %q, so text was inserted before or into one of their checkpoints", file, n.Line, head.Origin, v.report.Origin)
			}
			v.report.others++
			continue
		}
		c, err := v.o.Keys.Open(n.Raw)
		if err != nil {
			return nil, fmt.Errorf("%s line %d: %w", file, n.Line, err)
		}
		if key := v.o.Keys.doubled(head.Origin, n.Raw); key != "" {
			return nil, fmt.Errorf("%s line %d: %s signed the checkpoint more than once, and which of its signatures counts is not known", file, n.Line, key)
		}
		if err := v.origin(c.Origin); err != nil {
			return nil, fmt.Errorf("%s line %d: %w", file, n.Line, err)
		}
		if len(found) >= maxExpected {
			return nil, fmt.Errorf("%s: more than %d checkpoints", file, maxExpected)
		}
		found = append(found, expected{Checkpoint: c, file: file, line: n.Line})
	}
	if len(found) == 0 {
		which := "this log"
		if v.report.Origin != "" {
			which = v.report.Origin
		}
		return nil, fmt.Errorf("%s holds no checkpoint of %s", file, which)
	}
	return found, nil
}

// ownFile says why a file is the log's own checkpoint file, or cannot be told from a copy of it; it returns "" if the file appears to have been kept elsewhere. An
// attacker who rolls a log back rolls back its own checkpoints too.
func (v *verification) ownFile(file string, given []expected) (why string, err error) {
	info, err := os.Stat(file)
	if err != nil {
		return "", err
	}
	for _, own := range append(v.ownBeside(), v.own) {
		if known, err := os.Stat(own); err == nil && os.SameFile(info, known) {
			return "it is the log's own file of checkpoints", nil
		}
	}
	for _, dir := range v.dirs() {
		isWithin, err := IsWithin(file, dir)
		if err != nil {
			return "", err
		}
		if isWithin {
			return "it lies in the directory of the log", nil
		}
	}
	for _, e := range given {
		if len(e.Witnesses) > 0 || !v.beside[signedOf(e.Checkpoint)] {
			return "", nil
		}
	}
	return "every checkpoint in it lies beside the log too, so that it cannot be told from a copy of the log's own file", nil
}

// dirs are the directories in which the log lies: the one that was named, or those of the files that were.
func (v *verification) dirs() []string {
	if v.o.Dir != "" {
		return []string{v.o.Dir}
	}
	var dirs []string
	for _, file := range v.o.Files {
		if dir := filepath.Dir(file); !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// ownBeside are the files of checkpoints beside the named files. They were not named themselves, so the records need not match them.
func (v *verification) ownBeside() []string {
	if v.o.Dir != "" {
		return nil
	}
	var files []string
	for _, dir := range v.dirs() {
		if file := filepath.Join(dir, CheckpointFile); file != v.own {
			files = append(files, file)
		}
	}
	return files
}

// knowBeside remembers the checkpoints in checkpoint files beside the named files, so that copies of them are recognised.
func (v *verification) knowBeside() error {
	for _, file := range v.ownBeside() {
		f, _, err := openRegular(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		for n, err := range Notes(f) {
			if err != nil {
				break // the rest of the file cannot be read, so that it holds no checkpoint to copy
			}
			if c, err := v.o.Keys.Open(n.Raw); err == nil {
				v.remember(c)
			}
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}

// remember notes that a checkpoint lies beside the log, with the time of its signing and without it.
func (v *verification) remember(c Checkpoint) {
	at := signedOf(c)
	v.beside[at], v.beside[signed{at.Head, 0}] = true, true
}

// knowsOwn says whether a checkpoint of this log lies beside it, to hold others against.
func (v *verification) knowsOwn() bool {
	for s := range v.beside {
		if s.Origin == v.report.Origin {
			return true
		}
	}
	return false
}

// signed is a head and when it was signed, 0 if it does not say.
type signed struct {
	Head
	at int64
}

func signedOf(c Checkpoint) signed {
	if c.SignedAt.IsZero() {
		return signed{c.Head, 0}
	}
	return signed{c.Head, c.SignedAt.Unix()}
}

// IsWithin says whether path is a directory or lies in or below it, by whatever name and link. Both must be there.
func IsWithin(path, dir string) (bool, error) {
	dirInfo, err := os.Stat(dir)
	if err != nil {
		return false, err
	}
	at, err := filepath.Abs(path)
	if err == nil {
		at, err = filepath.EvalSymlinks(at)
	}
	for err == nil {
		var info os.FileInfo
		if info, err = os.Stat(at); err == nil && os.SameFile(info, dirInfo) {
			return true, nil
		}
		parent := filepath.Dir(at)
		if parent == at {
			break
		}
		at = parent
	}
	return false, err
}

// onlyOrigin is the log whose keys were given, "" if they belong to several.
func (v *verification) onlyOrigin() string {
	if o := v.o.Keys.Origins(); len(o) == 1 {
		return o[0]
	}
	return ""
}

// origin requires every checkpoint to be of the same log.
func (v *verification) origin(name string) error {
	v.report.Origin = cmp.Or(v.report.Origin, name)
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
		if l := &v.expect[n-1]; l.Head == e.Head && l.isOutside == e.isOutside && l.rank == e.rank { // an idle log signs the same head every minute
			l.Witnesses = append(l.Witnesses, e.Witnesses...)
			l.SignedAt = later(l.SignedAt, e.SignedAt)
			return nil
		}
	}
	e.Origin = strings.Clone(e.Origin)
	v.expect = append(v.expect, e)
	return nil
}
