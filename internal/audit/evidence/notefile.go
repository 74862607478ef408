package evidence

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/pipeguard/pipeguard/internal/atomicfile"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

// noteFile is the file of checkpoints beside a log. It has one writer.
type noteFile struct {
	path   string
	file   *os.File
	length int64 // of the notes that are whole
	room   int64 // up to where disk space is kept for it
	// strange is how many checkpoints without a time of signing there were when the file was last read: it was changed.
	strange int
}

// noteRoom is the disk space that is kept for further checkpoints, in bytes: some hundred. A full disk is what they should tell of. A file that is opened,
// or takes the place of another, has half of it, which is what the one before kept at least: a start needs no more room than what ran before it had.
const noteRoom = 256 << 10

// keepAll is how long every checkpoint is kept; of older ones the last of each hour is.
const keepAll = 24 * time.Hour

// thin opens the file, and returns the last checkpoint in it, unverified, nil if there is none. It rewrites the file without checkpoints that are no longer needed, and without a torn one at its end. Where the file cannot be replaced, on a full
// disk or while it is being read on Windows, it stays in use, and only its torn end is cut off: a start must not need room.
func (f *noteFile) thin(now time.Time) (last []byte, err error) {
	old, _, err := openRegular(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, f.open(-1)
	}
	if err != nil {
		return nil, err
	}
	temp, failed := atomicfile.Create(f.path)
	out := bufio.NewWriter(io.Discard)
	if failed == nil {
		out.Reset(temp)
	}
	note, strange, err := thin(old, out, now)
	if err != nil {
		err = fmt.Errorf("%s: %w", f.path, err)
	}
	f.strange = strange
	err = errors.Join(err, old.Close(), f.close()) // Windows replaces no file that is open
	if failed == nil {
		failed = errors.Join(out.Flush(), reserve(temp), temp.Sync(), temp.Close())
		if failed == nil && err == nil {
			failed = os.Rename(temp.Name(), f.path)
		}
		if failed != nil || err != nil {
			err = errors.Join(err, os.Remove(temp.Name()))
		}
	}
	if err != nil {
		return nil, err
	}
	end := note.End
	if failed == nil {
		end, err = -1, atomicfile.SyncDir(filepath.Dir(f.path))
	}
	return note.Raw, errors.Join(err, f.open(end))
}

// open opens the file and leaves out what stands behind its end, in bytes; nothing if that is negative.
func (f *noteFile) open(end int64) error {
	if info, err := os.Lstat(f.path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s: not a regular file", f.path)
	}
	file, err := segment.OpenAppend(f.path)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err == nil && end >= 0 && end < info.Size() {
		if err = file.Truncate(end); err == nil {
			_, err = file.Seek(0, io.SeekEnd)
		}
		if err = errors.Join(err, file.Sync()); err == nil {
			info, err = file.Stat()
		}
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	f.file, f.length, f.room = file, info.Size(), 0
	_ = reserve(file) // more once there is a checkpoint: on a full disk, the log that it is of has to begin first
	return nil
}

// reserve keeps disk space for some checkpoints behind the end of the file.
func reserve(file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if err := segment.Reserve(file, info.Size(), noteRoom/2); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}

// reserve keeps disk space for further checkpoints. Without it they are written as long as there is some.
func (f *noteFile) reserve() {
	if f.length+noteRoom/2 > f.room && segment.Reserve(f.file, f.length, noteRoom) == nil {
		f.room = f.length + noteRoom
	}
}

// append writes a note, and an empty line behind it, to the disk. What a write that failed left behind is left out before the next one.
func (f *noteFile) append(raw []byte, now time.Time) error {
	mend := f.file == nil
	if !mend {
		info, err := f.file.Stat()
		mend = err != nil || info.Size() != f.length
	}
	if mend {
		if _, err := f.thin(now); err != nil {
			return err
		}
	}
	if _, err := f.file.Write(append(raw[:len(raw):len(raw)], '\n')); err != nil {
		return err
	}
	if err := f.file.Sync(); err != nil {
		return err
	}
	f.length += int64(len(raw)) + 1
	f.reserve()
	return nil
}

func (f *noteFile) close() error {
	if f.file == nil {
		return nil
	}
	err := f.file.Close()
	f.file = nil
	return err
}

// thin copies the checkpoints of the last day, the last one of each hour before, those before and after a change of the keys that sign, and the last of
// all, which it returns. What is torn behind it is left out. What looks like a checkpoint and does not say when it was signed is copied, for a verification
// to name, and counted as strange. A place that is none is an error unless the file ends in it.
func thin(in io.Reader, out *bufio.Writer, now time.Time) (last Note, strange int, err error) {
	var begins int64 // of last, in the file
	var signed time.Time
	by := ""         // of last
	changes := false // last is the first one that by signed
	put := func(isLast bool) {
		_, _ = out.Write(last.Raw)                            // Flush returns the error
		if isLast || last.End-begins > int64(len(last.Raw)) { // an empty line where there is one, and at the end
			_ = out.WriteByte('\n')
		}
	}
	for n, broken := range Notes(in) {
		if isTorn(broken) || n.IsOpen {
			break
		}
		if broken != nil {
			return Note{}, strange, broken
		}
		at, keys := claimed(n.Raw)
		if at.IsZero() {
			strange++
		}
		isOfAnHour := !signed.IsZero() && !at.IsZero() && at.Truncate(time.Hour).Equal(signed.Truncate(time.Hour))
		if last.Raw != nil && (!isOfAnHour || now.Sub(at) < keepAll || keys != by || changes) {
			put(false)
		}
		changes = keys != by
		last, begins, signed, by = n, last.End, at, keys
	}
	if last.Raw != nil {
		put(true)
	}
	return last, strange, nil
}

// claimed is when a checkpoint says it was signed, and the ids of the log's keys that did, with nothing verified; zero if it does not say.
func claimed(raw []byte) (at time.Time, by string) {
	n, err := unverified(raw)
	if err != nil {
		return time.Time{}, ""
	}
	head, err := ParseHead(n.Text)
	if err != nil {
		return time.Time{}, ""
	}
	for _, s := range n.UnverifiedSigs {
		if s.Name != head.Origin {
			continue
		}
		if signed, ok := signedAt(s); !ok {
			by += string(binary.BigEndian.AppendUint32(nil, s.Hash))
		} else if at.IsZero() {
			at = signed
		}
	}
	return at, by
}
