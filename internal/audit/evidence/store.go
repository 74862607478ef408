package evidence

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/pipeguard/pipeguard/internal/atmost"
	"github.com/pipeguard/pipeguard/internal/atomicfile"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

// Names of files beside the segments of a log.
const (
	CheckpointFile = segment.CheckpointFile
	StartFile      = segment.StartFile
)

// startTitle is the first line of a start file. The file needs no signature: the next checkpoint
// fits no other hashes. Of records that are still there and in the tree already it says nothing: see isUnheld.
const startTitle = "pipeguard.dev/audit-start/v1"

// formatStart writes a tree: title, size, the roots of its whole subtrees, largest first.
func formatStart(t leafRange) []byte {
	return appendHashes(fmt.Appendf(nil, "%s\n%d\n", startTitle, t.end), t.subtrees())
}

func parseStart(text []byte) (leafRange, error) {
	lines := strings.SplitN(string(text), "\n", 3)
	if len(lines) < 3 || lines[0] != startTitle || !bytes.HasSuffix(text, []byte("\n")) {
		return leafRange{}, errors.New("not the start of a pruned log")
	}
	size, ok := parseNumber(lines[1])
	if !ok {
		return leafRange{}, errors.New("the start of a pruned log has no size")
	}
	hashes, err := parseHashes(lines[2])
	if err != nil {
		return leafRange{}, fmt.Errorf("the start of a pruned log: %w", err)
	}
	t, ok := leafRangeOfHashes(0, size, hashes)
	if !ok {
		return leafRange{}, fmt.Errorf("the start of a pruned log: %d hashes do not make a tree of %d records", len(hashes), size)
	}
	return t, nil
}

// maxStart is more than the start of any log takes: a hash for each bit of a number of records.
const maxStart = 64 << 10

// readStart reads the start of the log in dir; a log that was never pruned starts at nothing.
func readStart(file string) (leafRange, error) {
	text, err := readRegular(file, maxStart)
	if errors.Is(err, fs.ErrNotExist) {
		return leafRange{}, nil
	}
	if _, isTooLong := errors.AsType[*atmost.SizeError](err); err != nil && !isTooLong {
		return leafRange{}, err
	}
	var t leafRange
	if err == nil {
		t, err = parseStart(text)
	}
	if err != nil { // it is the log's own, so what is wrong in it is a fault of the log
		return leafRange{}, &Fault{file, 0, 0, err.Error()}
	}
	return t, nil
}

// openRegular opens a file of a log, as segment.OpenRegular does. Anything else of that name is a *Fault.
func openRegular(file string) (*os.File, os.FileInfo, error) {
	f, info, err := segment.OpenRegular(file)
	if errors.Is(err, segment.ErrNotRegular) {
		err = &Fault{file, 0, 0, segment.ErrNotRegular.Error()}
	}
	return f, info, err
}

// readRegular reads a small file of a log: see openRegular.
func readRegular(file string, limit int64) ([]byte, error) {
	f, _, err := openRegular(file)
	if err != nil {
		return nil, err
	}
	return atmost.ReadAndClose(f, limit)
}

// replace writes a file so that after a crash either the old or the new content is there.
func replace(file string, content []byte) error {
	temp, err := atomicfile.Create(file)
	if err != nil {
		return err
	}
	return fill(temp, file, content)
}

// fill is replace by an empty file that is there, and gives back the disk space that was kept for more.
func fill(temp *os.File, file string, content []byte) error {
	_, err := temp.Write(content)
	return atomicfile.Commit(temp, file, errors.Join(err, temp.Truncate(int64(len(content)))))
}
