package token

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	// maxToken is in bytes, and what the proxy reads at most.
	maxToken = 8 << 10
	// usualMaxAge is short beside the 12 minutes that the kubelet leaves between a new token and the end of an old one that
	// lives for an hour.
	usualMaxAge = time.Minute
)

// Options say how a token's file is read. The zero value is good for most drivers.
type Options struct {
	// Optional lets calls go without a token if there is no file, for drivers that also run on nodes without the proxy.
	// A file that is there and cannot be read fails the calls all the same.
	Optional bool
	// MaxAge is for how long a token is used without reading the file again, 1m if not set. A file that looks different, by
	// its size, its time or its identity, is read at once.
	MaxAge time.Duration
}

// Source is the file of a token, which the kubelet writes anew when most of the token's life is over. It may be used by many
// goroutines and connections.
type Source struct {
	file    string
	options Options

	mu    sync.Mutex // guards the fields below
	token string
	seen  fs.FileInfo // what the file looked like when token was read
	read  time.Time   // when that was
}

// NewSource returns a source that reads a file when the first token is needed.
func NewSource(file string, o Options) *Source {
	if o.MaxAge <= 0 {
		o.MaxAge = usualMaxAge
	}
	return &Source{file: file, options: o}
}

// Token returns the token that the file holds now, or "" if there is no file and none is needed. If the file cannot be read
// for a moment the last token is returned, for as long as MaxAge. Errors name the file and never hold what is in it.
func (s *Source) Token() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	isRecent := s.token != "" && now.Sub(s.read) < s.options.MaxAge
	info, err := os.Stat(s.file)
	if err == nil && isRecent && isSame(info, s.seen) {
		return s.token, nil
	}
	token := ""
	if err == nil {
		token, info, err = load(s.file)
	}
	if err != nil {
		switch {
		case isRecent: // it may be about to be replaced
			return s.token, nil
		case s.options.Optional && errors.Is(err, fs.ErrNotExist):
			return "", nil
		}
		return "", fmt.Errorf("service-account token: %w", err)
	}
	s.token, s.seen, s.read = token, info, now
	return token, nil
}

func isSame(a, b fs.FileInfo) bool {
	return a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && os.SameFile(a, b)
}

// load reads a token, and says what the file looked like before.
func load(file string) (string, fs.FileInfo, error) {
	f, err := os.Open(file) // #nosec G304 -- the driver names the file
	if err != nil {
		return "", nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxToken+1))
	if err != nil {
		return "", nil, err
	}
	token := strings.TrimSpace(string(text))
	switch {
	case token == "":
		return "", nil, fmt.Errorf("%s is empty", file)
	case len(text) > maxToken:
		return "", nil, fmt.Errorf("%s is longer than %d bytes", file, maxToken)
	case strings.ContainsFunc(token, isForeign):
		return "", nil, fmt.Errorf("%s holds something else than one token", file)
	}
	return token, info, nil
}

// isForeign says whether a character is in no token (RFC 7515, section 7.1), so that a file that was mixed up with another is not sent.
func isForeign(r rune) bool {
	return r != '.' && r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
}
