package evidence

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

// maxUnpacked bounds what a packed segment may unpack to, in bytes: the longest that a writer can be told to make is 4 GiB.
const maxUnpacked = 4<<30 + segment.MaxLost

var errUnpacked = fmt.Errorf("unpacks to more than %d bytes, which no segment has", int64(maxUnpacked))

// Stored is a segment as it lies in a directory: as its writer left it, or packed by gzip (RFC 1952). It reads what the writer wrote.
type Stored struct {
	io.Reader
	file *os.File
	size int64 // of the file, packed or not
	left *io.LimitedReader
}

// OpenSegment opens a segment. What has the name of one and is no regular file is a *Fault; where a packed one is damaged, reading it returns a *Fault.
func OpenSegment(path string) (*Stored, error) {
	f, info, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	s := &Stored{Reader: f, file: f, size: info.Size()}
	if !strings.HasSuffix(path, segment.Packed) {
		return s, nil
	}
	s.left = &io.LimitedReader{R: &unpacking{from: f}, N: maxUnpacked + 1}
	s.Reader = packed{path, s.left}
	return s, nil
}

// unpacking is a gzip.Reader that reads its first byte when it is asked for one.
type unpacking struct {
	from io.Reader
	in   *gzip.Reader
}

func (u *unpacking) Read(b []byte) (n int, err error) {
	if u.in == nil {
		if u.in, err = gzip.NewReader(bufio.NewReader(u.from)); err != nil {
			u.in = nil
			return 0, notEnd(err)
		}
	}
	return u.in.Read(b)
}

// notEnd says of a file without a byte that it is no packed one.
func notEnd(err error) error {
	if err == io.EOF { //nolint:errorlint // as gzip.NewReader returns it
		return io.ErrUnexpectedEOF
	}
	return err
}

// packed tells what is wrong with a packed file as a fault of the log.
type packed struct {
	path string
	in   *io.LimitedReader
}

func (p packed) Read(b []byte) (int, error) {
	n, err := p.in.Read(b)
	switch {
	case p.in.N <= 0:
		return n, &Fault{p.path, 0, 0, errUnpacked.Error()}
	case err != nil && !errors.Is(err, io.EOF):
		return n, &Fault{p.path, 0, 0, "not packed by gzip: " + err.Error()}
	}
	return n, err
}

// Size is the length of the file in bytes, and says whether it is that of the records too: of a packed one it is not.
func (s *Stored) Size() (bytes int64, ofRecords bool) { return s.size, s.left == nil }

// Behind returns how many bytes stand behind the first read ones. They are not read unless the file is packed: a file may be all hole, and
// longer than any disk. Nothing can be read afterwards.
func (s *Stored) Behind(read int64) (int64, error) {
	if s.left == nil {
		info, err := s.file.Stat()
		if err != nil {
			return 0, err
		}
		return max(0, info.Size()-read), nil
	}
	if _, err := io.Copy(io.Discard, s.Reader); err != nil {
		return 0, err
	}
	return max(0, maxUnpacked+1-s.left.N-read), nil
}

// Close closes the file.
func (s *Stored) Close() error { return s.file.Close() }
