package evidence

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Verdict is the result of a verification.
type Verdict string

// Verdicts. Ok is said only if checkpoints that were held elsewhere cover every record.
const (
	VerdictOK         Verdict = "ok"
	VerdictTampered   Verdict = "tampered"
	VerdictIncomplete Verdict = "incomplete"
)

// Report is the result of a verification. Its JSON form is stable for users.
type Report struct {
	Schema  string  `json:"schema"` // pipeguard.dev/audit-verify/v1
	Verdict Verdict `json:"verdict"`
	// Fault is the first place that does not fit; nil unless tampered. Nothing behind it was looked at.
	Fault *Fault `json:"fault,omitempty"`
	// Incomplete says why not everything is proven.
	Incomplete []string `json:"incomplete"`
	// Limits are changes that this verification could not have noticed.
	Limits []string `json:"limits"`

	Origin   string `json:"origin,omitempty"`
	Segments int    `json:"segments"`
	Bytes    int64  `json:"bytes"`
	Records  uint64 `json:"records"` // that were read
	FirstSeq uint64 `json:"firstSeq"`
	LastSeq  uint64 `json:"lastSeq"`
	// Root is the root hash of the tree over the records 1 up to LastSeq, empty if it cannot be known.
	Root string `json:"root,omitempty"`
	// OwnCovered and OutsideCovered are the last records covered by a checkpoint that lay beside the log, and by one that was given.
	OwnCovered     uint64 `json:"ownCovered"`
	OutsideCovered uint64 `json:"outsideCovered"`
	// Witnessed is the last record covered by a cosignature of a known witness, in either; WitnessedAt is when, by the witness's clock.
	Witnessed   uint64    `json:"witnessed"`
	WitnessedAt time.Time `json:"witnessedAt,omitzero"`
	SignedAt    time.Time `json:"signedAt,omitzero"` // the newest time that the log itself signed
	Checkpoints int       `json:"checkpoints"`       // that fit the records
	Missing     []Range   `json:"missing"`           // records in segments that are not there
	PrunedUntil uint64    `json:"prunedUntil"`       // last record of those that the log says it removed
	TornBytes   int64     `json:"tornBytes"`         // behind the last record, or in segments without records that none of the log names
	// Void are the segments, empty ones too, in which no record counts, as the log says.
	Void []string `json:"void,omitempty"`
	// Unused are files that a process has while it writes, and leaves if it is killed: new contents of a file beside the segments, or room for them, and an
	// empty segment with the number of the next record or the one behind it. Nothing in them is read, and an attacker can make one.
	Unused []string `json:"unused,omitempty"`
	// IgnoredBytes stand behind records in other segments, or in segments without records, as the log says: writes that failed, or what was added.
	IgnoredBytes int64 `json:"ignoredBytes"`
	// Overruled are whole records among the ignored bytes.
	Overruled []Overruled `json:"overruled,omitempty"`
	// Declared is what the log itself says went wrong with it, and what it says it found beside its records that is not there any more.
	Declared []string `json:"declared,omitempty"`

	// Parts are the segments that were read, in order, and how much of each is of the log; Read is what was read in them, and Torn how many
	// bytes stand behind. A command that reads the same bytes shows the records that this report is about.
	Parts []Part `json:"-"`
	Read  Sum    `json:"-"`
	Torn  int64  `json:"-"`
	// Position is where a later verification may go on, the zero one if nothing behind VerifyOptions.After is signed.
	Position Position `json:"-"`
	// Uncovered says which records are present that no checkpoint covers, since the log counts them as removed; empty if there are none. See overlap.
	Uncovered string `json:"-"`
	// HadKeys says that keys were given: without them, nothing is proven.
	HadKeys bool `json:"-"`

	held      held     // with VerifyOptions.Hold
	takenOver []Range  // records that were not signed when the process that wrote them ended, and that the next one signed
	ended     []uint64 // records by which that one ended the intents among them
	begun     string   // what the first record of the log says was wrong

	lacksOwn    bool     // no checkpoint lies in the directory of the log
	newest      uint64   // size of the newest checkpoint that was held elsewhere
	byKeys      []string // doubts about which keys signed: whatever else is found stands behind them
	uncompared  uncompared
	witnessedBy map[string]byWitness // what each witness cosigned of this log
	cosignings  cosignings
	others      int // checkpoints of other logs, in what was held elsewhere
}

// Sum is a running hash of records in the order in which they are read.
type Sum struct {
	Records uint64
	hash    [sha256.Size]byte
}

// Add adds the leaf hash of a record.
func (s *Sum) Add(leaf [32]byte) {
	s.Records++
	var both [2 * sha256.Size]byte
	copy(both[:], s.hash[:])
	copy(both[sha256.Size:], leaf[:])
	s.hash = sha256.Sum256(both[:])
}

// reportSchema names the form of a Report.
const reportSchema = "pipeguard.dev/audit-verify/v1"

func (r *Report) incomplete(format string, args ...any) {
	r.Incomplete = append(r.Incomplete, fmt.Sprintf(format, args...))
}

// incompleteBy names the first few reasons of one kind. more says how many others there are.
func (r *Report) incompleteBy(reasons []string, more string) {
	r.Incomplete = append(r.Incomplete, reasons[:min(len(reasons), maxNamed)]...)
	if rest := len(reasons) - maxNamed; rest > 0 {
		r.incomplete(more, rest)
	}
}

// A forged log may declare any number of things, at any length.
const maxDeclared, maxDeclaredText = 1000, 500

func (r *Report) declare(seq uint64, what string) {
	switch {
	case len(r.Declared) > maxDeclared:
		return
	case len(r.Declared) == maxDeclared:
		what = "this and what later records declare is not listed"
	case len(what) > maxDeclaredText:
		what = strings.ToValidUTF8(what[:maxDeclaredText], "") + fmt.Sprintf(" [%d bytes cut]", len(what)-maxDeclaredText)
	}
	r.Declared = append(r.Declared, fmt.Sprintf("record %d: %s", seq, what))
}

func (r *Report) limit(format string, args ...any) {
	r.Limits = append(r.Limits, fmt.Sprintf(format, args...))
}

// conclude derives the verdict from the counts.
func (r *Report) conclude(o VerifyOptions) {
	defer r.limits(o)
	r.Incomplete = slices.Concat(r.byKeys, r.Incomplete)
	if r.Fault != nil {
		r.Verdict = VerdictTampered
		return
	}
	if len(o.Keys.all) == 0 {
		r.incomplete("no verifier key is given: no signature was verified")
	}
	if r.lacksOwn {
		r.incomplete("no checkpoint lies beside the log: a log that is signed has one from its first second on, so the file was removed or not copied")
	}
	if logs := len(o.Keys.Origins()); logs > 1 && o.Origin == "" {
		r.incomplete("the keys belong to %d logs, and the name of this one was not given", logs)
	}
	for _, text := range r.uncompared.doubts(r.witnessedBy, r.cosignings) {
		r.incomplete("%s", text)
	}
	for _, m := range r.Missing {
		r.incomplete("records %d to %d are in segments that are not here", m.First, m.Last)
	}
	if r.PrunedUntil > 0 && !o.AllowPruned {
		r.incomplete("records 1 to %d were pruned before, as the log says itself", r.PrunedUntil)
	}
	if r.TornBytes > 0 {
		r.incomplete("%d bytes after the last record, or in files without records, are not records: a record being written, one that was cut short, or something added", r.TornBytes)
	}
	var unsigned []string
	for _, o := range r.Overruled {
		if o.Unsigned {
			unsigned = append(unsigned, o.String())
		}
	}
	r.incompleteBy(unsigned, "whole records in %d more segments were declared torn, and nothing shows by whom")
	switch {
	case r.OutsideCovered == 0:
		r.incomplete("no checkpoint that was held elsewhere covers the log: records at its end may be missing")
	case r.OutsideCovered < r.LastSeq:
		r.incomplete("records %d to %d are covered by no checkpoint that was held elsewhere", r.OutsideCovered+1, r.LastSeq)
	}
	r.Verdict = VerdictOK
	if len(r.Incomplete) > 0 {
		r.Verdict = VerdictIncomplete
	}
}

// limits lists what cannot be detected. It is part of the result, whatever the verdict.
func (r *Report) limits(o VerifyOptions) {
	r.limit("What never reached the log: an operation that ran past the guard, or a record that was never written.")
	r.limit("Whether records tell the truth: times are the node's clock, and names, paths and errors come from the callers.")
	r.limit("The holder of the log's private key can write another log and sign it; only checkpoints held elsewhere, or a witness, contradict it.")
	for i, t := range r.takenOver {
		if i == maxNamed {
			r.limit("Changes to the last records before %d more starts: these were not signed before their process ended either.", len(r.takenOver)-i)
			break
		}
		r.limit("Changes to %d records, from %d to %d, before they were signed: they were not signed before the process that wrote them ended, and the next start signed them as it found them.", t.Last-t.First+1, t.First, t.Last)
	}
	if n := len(r.ended); n > 0 {
		r.limit("Whether operations took place that %d Orphaned records tell of, the first of them record %d: they repeat what such records say.", n, r.ended[0])
	}
	if r.uncompared.count > 0 {
		r.limit("Whether %d checkpoints from elsewhere, of up to %d records, were signed of this log: these records were pruned, and their hashes are not known.", r.uncompared.count, r.uncompared.last)
	}
	if r.others > 0 {
		r.limit("What %d checkpoints of other logs say, among those from elsewhere: they were not looked at.", r.others)
	}
	if r.begun != "" {
		r.limit("What was before: the first record of the log says that %s.", r.begun)
	}
	if r.newest > r.OwnCovered && r.Fault == nil && !r.lacksOwn {
		r.limit("Why the newest checkpoint beside the log is of %d records, and one that was held elsewhere of %d: the copy is older, or checkpoints were removed.", r.OwnCovered, r.newest)
	}
	if r.Verdict == VerdictOK {
		return
	}
	covered := max(r.OwnCovered, r.OutsideCovered)
	if len(o.Keys.all) == 0 {
		r.limit("Without keys: a log that was rewritten from any record on, with all hashes computed anew.")
	} else if covered == 0 {
		r.limit("No record is covered by a checkpoint: an account that can write to the log could change or remove any and compute the hashes anew.")
	} else if covered < r.LastSeq {
		r.limit("Records after %d are covered by no checkpoint: an account that can write to the log could change or remove them and compute their hashes anew.", covered)
	}
	if r.OutsideCovered == 0 {
		r.limit("A rollback: log and checkpoints cut back together to any earlier state look like a log that ends there.")
	} else if r.OutsideCovered < r.LastSeq {
		r.limit("A rollback to a state after record %d: log and checkpoints cut back together look like a log that ends there.", r.OutsideCovered)
	}
	if r.PrunedUntil > 0 {
		r.limit("What records 1 to %d said: they are gone, only their hash is known.", r.PrunedUntil)
	}
	if len(r.Missing) > 0 {
		r.limit("Changes in or behind records that are not here: roots can be computed only up to record %d.", r.Missing[0].First-1)
	}
}
