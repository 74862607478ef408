package query

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

// Source is one or several logs to read: files in the order of their records.
type Source struct {
	ctx   context.Context // of one reading
	logs  []*Log
	stdin io.Reader
}

// part is a file, or the beginning of one.
type part struct {
	evidence.Part
	isLast bool // nothing of its log says where it ends
}

// Open finds the files of logs. A name is a file, a directory of segments, or - for stdin. Names are read in the order given, and nothing that is
// read is verified.
func Open(names []string, stdin io.Reader) (*Source, error) {
	return open(context.Background(), names, stdin, nil)
}

// OpenVerified is Open for logs that are verified first, as o says with its Dir and Files left empty: each directory is a log, and all
// segments that are named by themselves are one. Of these, exactly what the verification covers is read; see Log.Standing. The error is one of reading
// or of what was asked.
func OpenVerified(ctx context.Context, names []string, stdin io.Reader, o evidence.VerifyOptions) (*Source, error) {
	return open(ctx, names, stdin, &o)
}

func open(ctx context.Context, names []string, stdin io.Reader, o *evidence.VerifyOptions) (*Source, error) {
	s, err := find(ctx, names, stdin, o)
	if err != nil {
		return nil, err
	}
	for _, l := range s.logs {
		if o != nil {
			if err := l.verify(ctx, *o); err != nil {
				return nil, err
			}
		}
		if l.kind == kindDirectory && len(l.parts) == 0 {
			return nil, l.isEmpty()
		}
	}
	return s, s.areDifferent()
}

// Find is Open for what is not going to be read: it says where logs lie and what they are made of, whether or not that can be read.
func Find(names []string) (*Source, error) { return find(context.Background(), names, nil, nil) }

func find(ctx context.Context, names []string, stdin io.Reader, o *evidence.VerifyOptions) (*Source, error) {
	s := &Source{ctx: ctx, stdin: stdin}
	var alone *Log // of segments that are named by themselves
	for _, name := range names {
		l, err := s.named(name, o)
		if err != nil {
			return nil, err
		}
		switch {
		case l.kind == kindFile && alone != nil:
			alone.Names, alone.parts = append(alone.Names, name), append(alone.parts, l.parts...)
			continue
		case l.kind == kindFile:
			alone = l
		}
		s.logs = append(s.logs, l)
	}
	if len(s.logs) == 0 {
		return nil, errors.New("no log is named")
	}
	return s, nil
}

// named finds the files of one name.
func (s *Source) named(name string, o *evidence.VerifyOptions) (*Log, error) {
	l := &Log{Names: []string{name}, kind: kindStream}
	if name == "-" {
		if slices.ContainsFunc(s.logs, func(l *Log) bool { return l.Names[0] == "-" }) {
			return nil, errors.New("standard input can be read once")
		}
		l.parts = []part{{Part: evidence.Part{Path: name, Bytes: -1}}}
		return l, nil
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		l.kind = kindDirectory
		return l, l.list(evidence.List)
	}
	base := filepath.Base(name)
	_, first, isSegment := segment.ParseCopy(base)
	if isSegment || o != nil && (base == evidence.CheckpointFile || base == evidence.StartFile) {
		l.kind = kindFile
		if info, err := os.Lstat(name); err != nil || !info.Mode().IsRegular() {
			return nil, errors.Join(err, fmt.Errorf("%s is not a regular file", name))
		}
	}
	p := part{Part: evidence.Part{Path: name, First: first, Bytes: -1}, isLast: true}
	if isSegment {
		p = besideOthers(p)
	}
	if isSegment || l.kind == kindStream {
		l.parts = []part{p}
	}
	return l, nil
}

// besideOthers says where a segment ends that is named by itself, if the one that follows it lies in the same directory.
func besideOthers(p part) part {
	parts, _, err := evidence.List(filepath.Dir(p.Path))
	if err != nil {
		return p
	}
	for i, other := range parts {
		if filepath.Base(other.Path) == filepath.Base(p.Path) {
			other.Path = p.Path
			return part{other, i == len(parts)-1}
		}
	}
	return p
}

// areDifferent refuses to read anything twice: by another name, by a link, or in another copy. Of a directory that a verification finds changed all is read:
// which of two copies is genuine is for people to say.
func (s *Source) areDifferent() error {
	given, in := map[string]string{}, map[string]*Log{}
	var infos []os.FileInfo
	var paths []string
	for _, l := range s.logs {
		for _, p := range l.parts {
			if name, _, ok := segment.ParseCopy(filepath.Base(p.Path)); ok {
				isChanged := l.kind == kindDirectory && l.Report != nil && l.Report.Fault != nil
				if before, twice := given[name]; twice && (in[name] != l || !isChanged) {
					return fmt.Errorf("%s is there twice: %s and %s", name, before, p.Path)
				}
				given[name], in[name] = p.Path, l
				continue
			}
			info, err := os.Stat(p.Path)
			if err != nil { // standard input, or it is gone, which reading it will tell
				continue
			}
			for i, other := range infos {
				if os.SameFile(info, other) {
					return fmt.Errorf("%s is there twice: %s and %s", filepath.Base(p.Path), paths[i], p.Path)
				}
			}
			infos, paths = append(infos, info), append(paths, p.Path)
		}
	}
	return nil
}

// Last has only so many segments read of each directory, from the end, unless it is verified. What is wrong with others does not show then.
func (s *Source) Last(segments int) {
	for _, l := range s.logs {
		l.cut(segments)
	}
}

// LastLines is Last for one segment, of which only so many lines are read, from the end.
func (s *Source) LastLines(lines int) {
	for _, l := range s.logs {
		l.cutLines(lines)
	}
}

// Only has Records leave out records that are not wanted, but not all of them: not those before which others are missing, that begin a segment, or that no writer
// writes so. All are judged alike, and what is said of lines that are no records, of records that do not follow on the one before them, and of the verification is the
// same. Reading ends when ctx is done.
func (s *Source) Only(ctx context.Context, wanted Wanted) {
	s.ctx = ctx
	for _, l := range s.logs {
		l.wanted = wanted
	}
}

// IsCut says whether Last or LastLines has left anything unread.
func (s *Source) IsCut() bool {
	return slices.ContainsFunc(s.logs, func(l *Log) bool { return l.isCut })
}

// Files are the files that are read, in order.
func (s *Source) Files() (files []string) {
	for _, l := range s.logs {
		for _, p := range l.parts {
			files = append(files, p.Path)
		}
	}
	return files
}

// IsVerified says whether the logs were to be verified.
func (s *Source) IsVerified() bool { return s.logs[0].isAsked }

// Directories are those in which the logs lie: the ones that were named, and those of segments that were named by themselves.
func (s *Source) Directories() (dirs []string) {
	for _, l := range s.logs {
		for _, name := range l.Names {
			switch l.kind {
			case kindDirectory:
				dirs = append(dirs, name)
			case kindFile:
				if dir := filepath.Dir(name); !slices.Contains(dirs, dir) {
					dirs = append(dirs, dir)
				}
			}
		}
	}
	return dirs
}

// Kinds counts logs by how they are named: as directories, as segments (one log together), and as streams, which cannot be verified.
type Kinds struct{ Directories, Files, Streams int }

// Kinds says how the logs are named.
func (s *Source) Kinds() (k Kinds) {
	for _, l := range s.logs {
		switch l.kind {
		case kindDirectory:
			k.Directories++
		case kindFile:
			k.Files++
		default:
			k.Streams++
		}
	}
	return k
}

// Logs are the logs that are read. What is known of them is complete when all records were asked for.
func (s *Source) Logs() []*Log { return s.logs }

// PrunedUntil is the last record of those that the first log removed, as a record says that a verification heeds; 0 if there is none. A log that
// was not verified is read for it, without keys.
func (s *Source) PrunedUntil() (uint64, error) { return s.logs[0].prunedUntil(s.ctx) }

// Records returns all records in order, as Read does. A record that does not follow on the one before it says so. Of a log that was verified
// all is read even if the caller has enough: else nothing could be said of what it has.
func (s *Source) Records() iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		goesOn := true
		for _, l := range s.logs {
			if !goesOn && l.Report == nil {
				continue
			}
			l.read(s.ctx, s.stdin, func(r Record, err error) bool {
				goesOn = goesOn && yield(r, err)
				return goesOn
			})
		}
	}
}
