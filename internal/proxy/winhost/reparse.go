package winhost

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unicode/utf16"
)

// Tags of reparse points that redirect an open (MS-FSCC 2.1.2.1).
const (
	tagMountPoint = 0xA0000003
	tagSymlink    = 0xA000000C
)

// Sizes in a REPARSE_DATA_BUFFER: tag, length and padding; then four offsets and lengths;
// then, for a symbolic link, flags.
const (
	reparseHeader = 8
	reparseNames  = 8
	reparseFlags  = 4
)

var errReparse = errors.New("malformed reparse point")

// encodeSymlink is the REPARSE_DATA_BUFFER of a symbolic link to an absolute path, with a drive letter or on a share:
// the name that is followed is the kernel's (\??\X:\… or \??\UNC\…), the name that is shown is the path.
// https://learn.microsoft.com/windows-hardware/drivers/ddi/ntifs/ns-ntifs-_reparse_data_buffer
func encodeSymlink(target string) ([]byte, error) {
	kernel := `\??\` + target
	if share, isShare := strings.CutPrefix(target, `\\`); isShare {
		kernel = `\??\UNC\` + share
	}
	substitute := utf16.Encode([]rune(kernel + "\x00"))
	shown := utf16.Encode([]rune(target + "\x00"))
	size := reparseNames + reparseFlags + 2*(len(substitute)+len(shown))
	if size > 16<<10-reparseHeader { // MAXIMUM_REPARSE_DATA_BUFFER_SIZE
		return nil, fmt.Errorf("link text of %d characters is too long", len(target))
	}
	le := binary.LittleEndian
	b := le.AppendUint32(nil, tagSymlink)
	for _, n := range []int{
		size, 0,
		0, 2*len(substitute) - 2, // where the substitute name starts, its length without the terminator
		2 * len(substitute), 2*len(shown) - 2, // the same of the shown name
	} {
		b = le.AppendUint16(b, uint16(n)) // #nosec G115 -- size is bounded above, and the others are smaller
	}
	b = le.AppendUint32(b, 0) // absolute
	for _, unit := range append(substitute, shown...) {
		b = le.AppendUint16(b, unit)
	}
	return b, nil
}

// decodeReparse returns the path that a symbolic link or a mount point leads to. It reads the name that Windows
// follows: the name that is shown has no effect, and the link's author chooses it freely.
func decodeReparse(b []byte) (string, error) {
	if len(b) < reparseHeader+reparseNames {
		return "", errReparse
	}
	le := binary.LittleEndian
	names := b[reparseHeader+reparseNames:]
	switch tag := le.Uint32(b); tag {
	case tagMountPoint:
	case tagSymlink:
		if len(names) < reparseFlags {
			return "", errReparse
		}
		names = names[reparseFlags:]
	default:
		return "", fmt.Errorf("reparse tag %#x is neither a link's nor a mount point's", tag)
	}
	offset, length := int(le.Uint16(b[reparseHeader:])), int(le.Uint16(b[reparseHeader+2:]))
	if length%2 != 0 || offset+length > len(names) {
		return "", errReparse
	}
	units := make([]uint16, 0, length/2)
	for i := offset; i < offset+length; i += 2 {
		units = append(units, le.Uint16(names[i:]))
	}
	return fromKernelName(string(utf16.Decode(units))), nil
}

// fromKernelName turns the kernel's spelling into the one that programs use.
func fromKernelName(name string) string {
	rest, isKernel := strings.CutPrefix(name, `\??\`)
	if !isKernel {
		return name
	}
	if share, isShare := strings.CutPrefix(rest, `UNC\`); isShare {
		return `\\` + share
	}
	if len(rest) >= 3 && rest[1] == ':' && rest[2] == '\\' {
		return rest
	}
	return `\\?\` + rest
}
