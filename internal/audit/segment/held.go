package segment

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// held describes the content of a file as records do for segments that they declare void. A file longer than MaxTorn is not read.
func held(disk Disk, name string) (string, error) {
	r, size, err := disk.Read(name)
	if err != nil {
		return "", err
	}
	defer r.Close() //nolint:errcheck // only read
	return Held(r, size)
}

// Held describes the content of a file of so many bytes in the form of audit.Log.VoidHeld.
func Held(r io.Reader, size int64) (string, error) {
	if size > MaxTorn {
		return strconv.FormatInt(size, 10), nil
	}
	h := sha256.New()
	if _, err := io.CopyN(h, r, size); err != nil {
		return "", fmt.Errorf("read %d bytes: %w", size, err)
	}
	return strconv.FormatInt(size, 10) + " " + hex.EncodeToString(h.Sum(nil)), nil
}

// ParseHeld returns the length and the hash that a record says a void segment had. False means that the text is not of that form.
func ParseHeld(text string) (size int64, hash string, ok bool) {
	length, hash, _ := strings.Cut(text, " ")
	size, err := strconv.ParseInt(length, 10, 64)
	return size, hash, err == nil && size >= 0
}

// heldAll describes all void segments. One that cannot be read is reported.
func (l *log) heldAll(names []string) (all []string) {
	for _, name := range names {
		text, err := held(l.disk, name)
		if err != nil {
			l.options.OnFault(fmt.Errorf("read what is in audit segment %s, which is declared void: %w", name, err))
		}
		all = append(all, text)
	}
	return all
}

// tellVoid names the segments that the next one declares void and that are not known to be what a start that was killed at once leaves: an empty file
// of the number that is due, or of the one behind a last LogClose.
func tellVoid(found *Found, strays *strays) {
	for _, name := range found.void {
		first, _ := ParseName(name)
		switch size := found.sizes[name]; {
		case slices.Contains(found.behind, name): // it is named already
		case !IsDue(first, found.Last):
			strays.add(name, "it holds no record, and its number is not the next one")
		case size > 0:
			strays.add(name, fmt.Sprintf("no record in its %d bytes counts: a start that was killed, or a write that failed, leaves such a file, and an attacker can add one", size))
		}
	}
	if n := len(found.void); n > maxVoid {
		strays.say(fmt.Sprintf("%d files without a record", n), fmt.Sprintf("the next segment declares %d of them, and verifications will name the others", maxVoid))
	}
	strays.n = 0
}

// tellChanged names the segments that were declared void before and were extended or changed since. At most MaxUnsignedTorn bytes of them are read.
func tellChanged(disk untilDone, found *Found, strays *strays) {
	read := int64(0)
	for _, name := range slices.Sorted(maps.Keys(found.held)) {
		before, hash, ok := ParseHeld(found.held[name])
		now := found.sizes[name]
		isChanged := ok && now > before
		if ok && now == before && hash != "" && read+now <= MaxUnsignedTorn {
			read += now
			text, err := held(disk, name)
			isChanged = (err != nil || text != found.held[name]) && disk.ctx.Err() == nil
		}
		if isChanged {
			strays.add(name, "it was declared void before, and was changed since")
		}
	}
}
