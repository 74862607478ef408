package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/pipeguard/pipeguard/internal/atmost"
)

// Names in the archive, as OPA writes them.
const (
	manifestFile   = "/.manifest"
	signaturesFile = "/.signatures.json"
	aclFile        = "/acl/data.json"
	modulesDir     = "/policies/"
)

// pack writes files in the order of their names, with nothing that differs from one run to the next.
func pack(files map[string][]byte) ([]byte, error) {
	var out bytes.Buffer
	zip, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	archive := tar.NewWriter(zip)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text := files[name]
		h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o600, Size: int64(len(text)), Format: tar.FormatPAX}
		if err := archive.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("pack %s: %w", name, err)
		}
		if _, err := archive.Write(text); err != nil {
			return nil, fmt.Errorf("pack %s: %w", name, err)
		}
	}
	if err := errors.Join(archive.Close(), zip.Close()); err != nil {
		return nil, fmt.Errorf("pack: %w", err)
	}
	return out.Bytes(), nil
}

// unpack reads an archive into memory. Every name is one that a bundle has; nothing is written anywhere.
func unpack(raw []byte) (map[string][]byte, error) {
	if len(raw) > MaxCompressed {
		return nil, refuse(ReasonSize, fmt.Errorf("%d bytes, and at most %d are taken", len(raw), MaxCompressed))
	}
	packed := bytes.NewReader(raw)
	zip, err := gzip.NewReader(packed)
	if err != nil {
		return nil, refuse(ReasonArchive, err)
	}
	zip.Multistream(false) // one archive: what follows it would be read by some and not by others
	// Headers and padding count as well, or empty files without end would cost nothing.
	bounded := &bound{r: zip, left: MaxUncompressed}
	files, err := unpackTar(tar.NewReader(bounded))
	if err == nil {
		err = onlyZeros(bounded)
	}
	if bounded.over {
		return nil, refuse(ReasonSize, fmt.Errorf("more than %d bytes unpacked", MaxUncompressed))
	}
	if err == nil && packed.Len() > 0 {
		err = fmt.Errorf("%d bytes behind the archive", packed.Len())
	}
	if err != nil {
		if ReasonOf(err) != "" {
			return nil, err
		}
		return nil, refuse(ReasonArchive, err)
	}
	return files, nil
}

func unpackTar(archive *tar.Reader) (map[string][]byte, error) {
	files := map[string][]byte{}
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if len(files) == MaxFiles {
			return nil, refuse(ReasonSize, fmt.Errorf("more than %d files", MaxFiles))
		}
		if h.Typeflag != tar.TypeReg {
			return nil, refuse(ReasonContent, fmt.Errorf("%q is not a plain file", h.Name))
		}
		if err := checkName(h.Name); err != nil {
			return nil, refuse(ReasonContent, err)
		}
		if _, twice := files[h.Name]; twice {
			return nil, refuse(ReasonContent, fmt.Errorf("%q is there twice", h.Name))
		}
		if files[h.Name], err = refuseSize(atmost.ReadAll(archive, MaxUncompressed)); err != nil {
			return nil, fmt.Errorf("%s: %w", h.Name, err)
		}
	}
}

// checkName accepts the names of a snapshot of policies. It refuses patches, Wasm and plans, and files that OPA would skip: a file
// that was signed is there for a purpose.
func checkName(name string) error {
	switch name {
	case manifestFile, signaturesFile, aclFile:
		return nil
	}
	if module, ok := strings.CutPrefix(name, modulesDir); ok && isModuleName(module) {
		return nil
	}
	what := "has no place in a bundle in the form " + Schema + ": if a later release made it, upgrade this program to that release"
	switch {
	case strings.HasSuffix(name, "patch.json"):
		what = "makes this a delta bundle; only whole ones are taken"
	case name == "/data.json":
		what = "makes this a bundle of an older release: have it made again by one of this release, in the form " + Schema
	}
	return fmt.Errorf("%q %s", name, what)
}

// bound ends a reader after a number of bytes, and notes that there were more.
type bound struct {
	r    io.Reader
	left int64
	over bool
}

func (b *bound) Read(p []byte) (int, error) {
	if b.left <= 0 {
		if n, err := b.r.Read(make([]byte, 1)); n == 0 {
			return 0, err
		}
		b.over = true
		return 0, errors.New("too long")
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// onlyZeros reads what follows the end of an archive: padding, and the checksum of the compressor behind it.
func onlyZeros(r io.Reader) error {
	block := make([]byte, 4096)
	for {
		n, err := r.Read(block)
		if slices.ContainsFunc(block[:n], func(b byte) bool { return b != 0 }) {
			return errors.New("bytes behind the last file")
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// hashOf is OPA's hash of a file. Of a document that is the hash of its value, written with sorted keys and no blanks: the one form in which a
// document is taken here. So nothing is parsed before it is known to be signed.
func hashOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
