package evidence

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// opening is what a segment says first: how the log stood when it was begun.
type opening struct {
	Segment
	isWhole  bool // its first record is there
	size     int64
	declared logFields
}

// look reads the first line of a segment. A writer judges a damaged one by itself.
func look(s Segment, isWriter bool) (opening, error) {
	o := opening{Segment: s}
	f, info, err := openRegular(s.Path)
	if err != nil {
		return o, err
	}
	defer f.Close() //nolint:errcheck // only read
	o.size = info.Size()
	raw, err := bufio.NewReaderSize(f, audit.MaxRecord).ReadSlice('\n')
	if errors.Is(err, io.EOF) || errors.Is(err, bufio.ErrBufferFull) {
		return o, nil
	}
	if err != nil {
		return o, fmt.Errorf("read %s: %w", s.Path, err)
	}
	if !isWriter && bytes.IndexByte(raw, 0) >= 0 { // a page of it was lost when the machine failed
		return o, nil
	}
	o.isWhole = true
	var r Record
	if parseRecord(raw[:len(raw)-1], &r) == nil && r.stage == string(audit.StageLogOpen) {
		o.declared, _ = r.logOf() // what cannot be read declares nothing, and will not fit
	}
	return o, nil
}

// inOrder returns the segments that hold records. Those that another one declares void hold none, nor do those that do not even hold their first
// record, as when a write failed or has just begun. To name a segment void that is none makes a gap in the log. Of what is ignored, unnamed
// bytes are in segments that none of the log names: what they hold is no writer's word.
func inOrder(segments []Segment, isWriter bool) (out []opening, ignored, unnamed int64, err error) {
	void := map[string]bool{}
	for _, s := range segments {
		o, err := look(s, isWriter)
		if err != nil {
			return nil, 0, 0, err
		}
		for _, name := range o.declared.Log.Void {
			void[name] = name != filepath.Base(s.Path) || void[name]
		}
		out = append(out, o)
	}
	var kept []opening
	named := map[string]bool{}
	for _, o := range out {
		if o.isWhole && !void[filepath.Base(o.Path)] {
			kept = append(kept, o)
			for _, name := range o.declared.Log.Void {
				named[name] = true
			}
		}
	}
	for _, o := range out {
		name := filepath.Base(o.Path)
		if o.isWhole && !void[name] {
			continue
		}
		ignored += o.size
		if !named[name] {
			unnamed += o.size
		}
	}
	return kept, ignored, unnamed, nil
}

// follows compares what a segment declares of the one before with what is there: bytes of the log, and bytes behind them.
func (o opening) follows(before Segment, bytes, behind int64) error {
	d := o.declared.Log
	switch {
	case d.PreviousSegment != filepath.Base(before.Path):
		return &Fault{o.Path, 1, o.First, fmt.Sprintf("says that it follows segment %q, and stands behind %s", d.PreviousSegment, filepath.Base(before.Path))}
	case d.PreviousBytes != bytes:
		return &Fault{o.Path, 1, o.First, fmt.Sprintf("says that %d bytes of %s are of the log, and there are %d", d.PreviousBytes, filepath.Base(before.Path), bytes)}
	case behind > d.TornBytes:
		return &Fault{before.Path, 0, o.First - 1, fmt.Sprintf("%d bytes stand behind its last record, and the next segment declares %d", behind, d.TornBytes)}
	}
	return nil
}
