package pipepath

// Kind says what sort of object a path names.
type Kind string

// Kinds of names. The comments say what [Guard.Judge] makes of them.
const (
	KindPath            Kind = "path"             // drive, relative and Linux paths: no match
	KindDrive           Kind = "drive"            // a drive behind a device prefix (\\?\C:\x): no match
	KindPipe            Kind = "pipe"             // one pipe: a match if its name is guarded
	KindPipeRoot        Kind = "pipe-root"        // the directory of all pipes: always a match
	KindAncestor        Kind = "ancestor"         // a namespace above the pipes (\\.\, \\.\globalroot): always a match
	KindUNC             Kind = "unc"              // a share on some host: no match
	KindUNCHost         Kind = "unc-host"         // a host without a share, whose pipes are below it: always a match
	KindDOSDevice       Kind = "dos-device"       // another device (\\.\mailslot\x): no match
	KindNTDevice        Kind = "nt-device"        // another device by its NT name (\\.\globalroot\device\x): no match
	KindNTOther         Kind = "nt-other"         // an NT directory of which nothing is known: always a match
	KindMalformed       Kind = "malformed"        // a device or UNC path with characters or a host that no name has, or what may become one by a variable: always a match
	KindMalformedDotdot Kind = "malformed-dotdot" // a device or UNC path with a ".." segment: always a match
)

// NeverAllowed reports whether names of this kind always match and name no single pipe,
// so that there is nothing that a policy could allow.
func (k Kind) NeverAllowed() bool {
	switch k {
	case KindPipeRoot, KindAncestor, KindUNCHost, KindNTOther, KindMalformed, KindMalformedDotdot:
		return true
	case KindPath, KindDrive, KindPipe, KindUNC, KindDOSDevice, KindNTDevice:
		return false
	}
	return true // a kind added later is refused until someone decides
}

// neverMatches reports whether no guard can match a name of this kind.
func (k Kind) neverMatches() bool { return k != KindPipe && !k.NeverAllowed() }

// Name is what a path names.
type Name struct {
	Kind Kind
	// Canonical is one spelling for all paths that name the same object: \\.\pipe\name, \\host\share\x,
	// \\.\device\x, c:\x, and the NT name (\device\x, \sessions\x) where there is no other.
	// A path of kind path is unchanged; a malformed one keeps its segments, folded.
	Canonical string
	// Pipe is the folded name of the pipe, without any prefix. It is set for KindPipe alone.
	Pipe string
}
