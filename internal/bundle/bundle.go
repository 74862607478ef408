package bundle

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Bundle is the signed policy set that a node enforces, with its validity period.
type Bundle struct {
	// Revision rises with each bundle of an audience, by whatever amount. It is never 0, and at most LatestRevision of IssuedAt.
	Revision uint64
	// MinimumRevision is the oldest that a node may still take once it has this one; 0 leaves it at Revision's own.
	MinimumRevision uint64
	// PolicyRevision is admission's revision of the policies that the bundle was made from. It may be empty.
	PolicyRevision string
	// Audience is the pool of nodes that this is for, a DNS label.
	Audience string
	// IssuedAt and ExpiresAt are whole seconds of UTC. From ExpiresAt on nothing in the bundle permits anything.
	IssuedAt, ExpiresAt time.Time
	// Modules are Rego by relative path, tests among them.
	Modules map[string]string
	// ACL is the access list, one JSON object in the form of package access.
	ACL []byte
}

// Bounds of a bundle.
const (
	// MaxCompressed bounds an archive in bytes, less than the 1 MiB that a ConfigMap holds with its base64 and names.
	MaxCompressed = 1000 << 10
	// MaxUncompressed bounds all files of an archive together: the modules that the policy engine takes, and an access list.
	// A compressor gains a factor of a thousand on zeros, so the compressed size bounds nothing.
	MaxUncompressed = 12 << 20
	// MaxFiles bounds their number: each costs a header and a hash before anything is known to be signed.
	MaxFiles = 300
	// MaxLife bounds ExpiresAt - IssuedAt: a bundle that never expires could not be withdrawn.
	MaxLife = 90 * 24 * time.Hour
	// MaxAhead bounds how far a revision may be ahead of the seconds since 1970: nothing could follow the largest number there
	// is, and after one in milliseconds none in seconds would be taken. Wrong clocks are seldom ahead by that much.
	MaxAhead = 365 * 24 * time.Hour
)

// LatestRevision is the largest revision that a bundle may have which is issued then.
func LatestRevision(issued time.Time) uint64 {
	return uint64(max(0, issued.Add(MaxAhead).Unix())) //nolint:gosec // not negative
}

// roots are the roots of the manifest: the access list, and the packages of modules.
var roots = []string{"acl", "pipeguard"}

// moduleName is a relative path whose segments begin with no dot. Modules never become files of a node.
var moduleName = regexp.MustCompile(`^([A-Za-z0-9_][A-Za-z0-9_.-]*/){0,4}[A-Za-z0-9_][A-Za-z0-9_.-]*\.rego$`)

// longestName bounds the path of a module in bytes: that of a PolicyModule with a file of it.
const longestName = 600

func isModuleName(s string) bool { return len(s) <= longestName && moduleName.MatchString(s) }

var audienceName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// CheckAudience says what is wrong with the name of a node pool.
func CheckAudience(s string) error {
	if !audienceName.MatchString(s) {
		return fmt.Errorf("audience %q: want the name of a node pool, lower-case letters, digits and -, at most 63", s)
	}
	return nil
}

// check reports every fault of a bundle's content, whichever key signed it.
func (b Bundle) check() error {
	var faults []error
	add := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if b.Revision == 0 {
		add("revision 0: want at least 1")
	}
	if latest := LatestRevision(b.IssuedAt); b.Revision > latest {
		add("revision %d: want at most %d, a year ahead of the seconds since 1970 at %s, when it was issued", b.Revision, latest, stamp(b.IssuedAt))
	}
	if b.MinimumRevision > b.Revision {
		add("minimum revision %d is newer than the revision %d", b.MinimumRevision, b.Revision)
	}
	if len(b.PolicyRevision) > 128 || strings.ContainsFunc(b.PolicyRevision, func(r rune) bool { return r <= ' ' || r > '~' }) {
		add("policy revision %q: want up to 128 printing characters", b.PolicyRevision)
	}
	if err := CheckAudience(b.Audience); err != nil {
		faults = append(faults, err)
	}
	switch {
	case b.IssuedAt.Year() < 2000 || b.ExpiresAt.Year() > 9999:
		add("issued at %s, expires at %s: want years that RFC 3339 can write", stamp(b.IssuedAt), stamp(b.ExpiresAt))
	case !b.ExpiresAt.After(b.IssuedAt):
		add("expires at %s, before it was issued at %s", stamp(b.ExpiresAt), stamp(b.IssuedAt))
	case b.ExpiresAt.Sub(b.IssuedAt) > MaxLife:
		add("lives for %v, and at most %v are taken", b.ExpiresAt.Sub(b.IssuedAt), MaxLife)
	}
	for name := range b.Modules {
		if !isModuleName(name) {
			add("module %q: want a relative path of letters, digits, -, _ and dots, with .rego at the end", name)
		}
	}
	slices.SortFunc(faults, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(faults...)
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
