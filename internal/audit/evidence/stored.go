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

// Stored is a segment as it lies in a directory: as its writer left it, or packed by gzip (RFC 1952). It reads what the writer wrote.
type Stored struct {
	io.Reader
	file   *os.File
	size   int64   // of the file, packed or not
	packed *packed // nil if it is not
}

// OpenSegment opens a segment. What has the name of one and is no regular file is a *Fault; where a packed one is damaged, reading it returns a *Fault.
func OpenSegment(path string) (*Stored, error) {
	f, info, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	s := &Stored{Reader: f, file: f, size: info.Size()}
	if strings.HasSuffix(path, segment.Packed) {
		s.packed = &packed{file: f}
		s.Reader = s.packed
	}
	return s, nil
}

// packed unpacks a file. What is wrong with it is a fault of the log.
type packed struct {
	file *os.File
	in   *gzip.Reader // nil until the first read
	read int64        // bytes
}

func (p *packed) Read(b []byte) (n int, err error) {
	if p.in == nil {
		p.in, err = gzip.NewReader(bufio.NewReader(p.file))
		if err == io.EOF { //nolint:errorlint // as gzip.NewReader returns it for an empty file
			err = io.ErrUnexpectedEOF
		}
	}
	if err == nil {
		n, err = p.in.Read(b)
		p.read += int64(n)
	}
	switch {
	case p.read > maxUnpacked:
		return n, &Fault{p.file.Name(), 0, 0, fmt.Sprintf("unpacks to more than %d bytes, which no segment has", int64(maxUnpacked))}
	case err != nil && !errors.Is(err, io.EOF):
		return n, &Fault{p.file.Name(), 0, 0, "not packed by gzip: " + err.Error()}
	}
	return n, err
}

// Size is the length of the file in bytes, and says whether it is that of the records too: of a packed one it is not.
func (s *Stored) Size() (bytes int64, ofRecords bool) { return s.size, s.packed == nil }

// Behind returns how many bytes stand behind the first read ones. They are not read unless the file is packed: a file may be all hole, and
// longer than any disk. Nothing can be read afterwards.
func (s *Stored) Behind(read int64) (int64, error) {
	if s.packed == nil {
		info, err := s.file.Stat()
		if err != nil {
			return 0, err
		}
		return max(0, info.Size()-read), nil
	}
	if _, err := io.Copy(io.Discard, s.Reader); err != nil {
		return 0, err
	}
	return max(0, s.packed.read-read), nil
}

// Close closes the file.
func (s *Stored) Close() error { return s.file.Close() }
