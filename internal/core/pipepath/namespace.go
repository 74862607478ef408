package pipepath

import "strings"

// reader finds out what the segments of one path name. It follows the object namespace of Windows:
//
//	\\.\x, \\?\x   = \??\x, the DOS device x        https://learn.microsoft.com/windows/win32/fileio/naming-a-file
//	\??\pipe       = \Device\NamedPipe
//	\??\UNC        = \Device\Mup, where \host\share follows
//	\??\GLOBALROOT = the root of the namespace
//	\??\Global     = \GLOBAL??, the devices of session 0
//	\DosDevices    = \??
//	\Sessions\N\DosDevices\x = \??, of a logon session
//	\Silos\N      = the root of a container's namespace
type reader struct {
	text string // the whole path, folded, with \ alone
}

// read takes segs[0] as the marker of a device path or as the host of a UNC path.
func (r reader) read(segs []string) Name {
	if !markerLike(segs[0]) {
		return r.named(segs)
	}
	name := r.device(segs[1:])
	if isMarker(segs[0]) || !name.Kind.neverMatches() {
		return name
	}
	return r.unc(segs) // "? " or ". ": if it is no marker, it is a host
}

// named reads a path whose first segment is a host, or the name of an NT directory behind one separator or a doubled one.
// Where a host could be called so, the pipes behind the NT name count.
func (r reader) named(segs []string) Name {
	host := r.unc(segs)
	if nt, ok := r.nt(segs); ok && (host.Kind.neverMatches() || !strings.HasPrefix(r.text, `\\`)) {
		return nt
	}
	return host
}

// nt reads a path whose first segment is the name of an NT directory, if it is one.
func (r reader) nt(segs []string) (Name, bool) {
	switch first := strings.TrimRight(segs[0], ". "); {
	case len(segs) > 1 && isDOSDirectory(first):
		return r.device(segs[1:]), true
	case len(segs) > 2 && first == "device" && isRedirector(segs[1]):
		return r.redirected(segs[1], segs[2:]), true
	case isPrivate(first, segs[1:]):
		return r.object(segs), true
	}
	return Name{}, false
}

func isMarker(seg string) bool { return seg == "." || seg == "?" || seg == "??" }

// markerLike reports whether seg is a marker but for dots and spaces at its end.
func markerLike(seg string) bool {
	switch strings.TrimRight(seg, ". ") {
	case "", "?", "??":
		return true
	}
	return false
}

// device reads what stands behind \\.\ .
func (r reader) device(segs []string) Name {
	for len(segs) > 0 {
		// Directories of DOS devices are none inside \??, but it costs nothing to see through them.
		if segs[0] == "global" || isDOSDirectory(segs[0]) {
			segs = segs[1:]
			continue
		}
		if segs[0] == "globalroot" && len(segs) > 1 && isDOSDirectory(segs[1]) {
			segs = segs[2:]
			continue
		}
		break
	}
	if len(segs) == 0 {
		return Name{Kind: KindAncestor, Canonical: `\\.`}
	}
	switch {
	case segs[0] == "pipe":
		return r.pipe(segs[1:])
	case segs[0] == "unc":
		return r.unc(segs[1:])
	case isRedirector(segs[0]):
		return r.redirected(segs[0], segs[1:])
	case segs[0] == "globalroot":
		return r.object(segs[1:])
	case segs[0] == "device", segs[0] == "sessions", segs[0] == "silos":
		return r.object(segs) // of the NT root, which is what \.\device has behind its dot; no DOS device is called so
	}
	if isDrive(segs[0]) {
		return Name{Kind: KindDrive, Canonical: r.join("", segs)}
	}
	return Name{Kind: KindDOSDevice, Canonical: r.join(`\\.\`, segs)}
}

// isDOSDirectory reports whether an entry of the NT root is a directory of DOS devices.
func isDOSDirectory(seg string) bool {
	return seg == "??" || seg == "global??" || seg == "dosdevices"
}

// isPrivate reports whether an entry of the NT root, with what follows it, leads to the devices of a session or a silo.
func isPrivate(root string, segs []string) bool {
	switch root {
	case "sessions", "silos":
		return len(segs) > 1 && (isDOSDirectory(segs[1]) || segs[1] == "device" || segs[1] == "sessions")
	}
	return false
}

func isDrive(seg string) bool {
	return len(seg) == 2 && seg[1] == ':' && 'a' <= seg[0] && seg[0] <= 'z'
}

// object reads a name of the NT namespace from its root. Outside of \device it knows nothing: there are
// directories of DOS devices per session and per silo, and links to others.
func (r reader) object(segs []string) Name {
	switch {
	case len(segs) == 0:
		return Name{Kind: KindAncestor, Canonical: `\\.\globalroot`}
	case segs[0] != "device":
		return Name{Kind: KindNTOther, Canonical: r.join(`\`, segs)}
	case len(segs) == 1:
		return Name{Kind: KindAncestor, Canonical: `\device`}
	}
	switch {
	case segs[1] == "namedpipe":
		return r.pipe(segs[2:])
	case isRedirector(segs[1]):
		return r.redirected(segs[1], segs[2:])
	}
	return Name{Kind: KindNTDevice, Canonical: r.join(`\`, segs)}
}

// hasHost reports whether the segment behind seg, in a device path, is the name of a host.
func hasHost(seg string) bool { return seg == "unc" || isRedirector(seg) }

// isRedirector reports whether \host\share follows the name of a device. vmsmb\<id> stands for the host, seen from a utility VM.
func isRedirector(seg string) bool {
	switch seg {
	case "mup", "lanmanredirector", "dfsclient", "windfs", "vmsmb":
		return true
	}
	return false
}

// redirected reads what stands behind the name of a redirector: a host and a share. That of DFS has its root or a drive before them, as in
// \Device\WinDfs\Root\host\share.
func (r reader) redirected(name string, segs []string) Name {
	unc := r.unc(segs)
	if name != "windfs" && name != "dfsclient" || !unc.Kind.neverMatches() {
		return unc
	}
	for segs[0][0] == ';' {
		segs = segs[1:]
	}
	behind := segs[1:] // there is a host and a share at least, or the name would match
	if pipe, ok := pipeShare(behind); ok {
		return r.pipe(pipe)
	}
	if len(behind) == 1 {
		return Name{Kind: KindUNCHost, Canonical: r.join(`\\`, behind)}
	}
	return unc
}

// unc reads \host\share\… . Hosts are never compared: the own machine has more names than one can list.
// Segments that begin with ; choose a redirector or a logon session and stand before the host.
func (r reader) unc(segs []string) Name {
	first := 0
	for first < len(segs) && segs[first][0] == ';' {
		first++
	}
	// Only the redirector knows whether a ; segment is an option or the host: every choice is tried.
	for i := first; i >= 0; i-- {
		if pipe, ok := pipeShare(segs[i:]); ok {
			return r.pipe(pipe)
		}
	}
	segs = segs[first:]
	switch {
	case len(segs) == 0:
		return Name{Kind: KindAncestor, Canonical: `\\`}
	case markerLike(segs[0]):
		// \\?\UNC\?\x: no host is called so, and \\?\x would be another path.
		return Name{Kind: KindMalformed, Canonical: r.text}
	case len(segs) == 1:
		return Name{Kind: KindUNCHost, Canonical: r.join(`\\`, segs)}
	}
	if name, ok := r.nt(segs); ok { // as the path would be read that it is
		return name
	}
	return Name{Kind: KindUNC, Canonical: r.join(`\\`, segs)}
}

// pipeShare returns what follows the share of all pipes in host, share, … .
// \\device\namedpipe is \device\namedpipe with a separator doubled.
func pipeShare(segs []string) (rest []string, ok bool) {
	if len(segs) < 2 {
		return nil, false
	}
	rest = segs[2:]
	switch segs[1] {
	case "pipe":
		return rest, true
	case "ipc$":
		if len(rest) > 0 && rest[0] == "pipe" {
			rest = rest[1:]
		}
		return rest, true
	case "namedpipe":
		return rest, strings.TrimRight(segs[0], ". ") == "device"
	}
	return nil, false
}

// pipe reads a pipe's name. LOCAL is the alias by which a process reaches its own session's pipes:
// outside of app containers that is the common directory.
func (r reader) pipe(segs []string) Name {
	for len(segs) > 0 && segs[0] == "local" {
		segs = segs[1:]
	}
	if len(segs) == 0 {
		return Name{Kind: KindPipeRoot, Canonical: `\\.\pipe`}
	}
	const prefix = `\\.\pipe\`
	canonical := r.join(prefix, segs)
	return Name{Kind: KindPipe, Canonical: canonical, Pipe: canonical[len(prefix):]}
}

// join returns prefix and the segments (one at least), without allocating if that is how the path was written.
func (r reader) join(prefix string, segs []string) string {
	size := len(prefix) + len(segs) - 1
	for _, s := range segs {
		size += len(s)
	}
	if size == len(r.text) && strings.HasPrefix(r.text, prefix) && joined(r.text[len(prefix):], segs) {
		return r.text
	}
	var b strings.Builder
	b.Grow(size)
	b.WriteString(prefix)
	for i, s := range segs {
		if i > 0 {
			b.WriteByte('\\')
		}
		b.WriteString(s)
	}
	return b.String()
}

// joined reports whether text is the segments with one \ between them.
func joined(text string, segs []string) bool {
	for i, s := range segs {
		if i > 0 {
			text = text[1:] // the lengths are equal; a byte that is no \ shows as a segment that differs
		}
		if !strings.HasPrefix(text, s) {
			return false
		}
		text = text[len(s):]
	}
	return text == ""
}
