package handler

import (
	"context"
	"time"

	"github.com/pipeguard/pipeguard/internal/core/safepath"
)

// Secret is a text of a request that only the host may read. However it is printed, it says [secret]. A program that a host hands it to
// may repeat it, in any form, so errors of an operation that has one contain only texts of the host itself.
type Secret struct{ text string }

// NewSecret hides a text.
func NewSecret(text string) Secret { return Secret{text} }

// Reveal returns the text. Only code that hands it to the system may call it.
func (s Secret) Reveal() string { return s.text }

// IsEmpty says whether there is no text.
func (s Secret) IsEmpty() bool { return s.text == "" }

// String implements fmt.Stringer.
func (Secret) String() string { return "[secret]" }

// GoString implements fmt.GoStringer.
func (Secret) GoString() string { return "[secret]" }

// MarshalText implements encoding.TextMarshaler.
func (Secret) MarshalText() ([]byte, error) { return []byte("[secret]"), nil }

// SMBMapping asks for a share to be reachable from all of the node.
type SMBMapping struct {
	Remote   RemotePath
	Local    safepath.Path // where a link to Remote is made; the zero Path makes none
	Username string        // empty logs on as the node itself
	Password Secret
	By       string // the caller that asks for it, as an administrator reads it
}

// Mapping is a share that is mapped for the whole node.
type Mapping struct {
	Share     Share
	Connected bool
	Links     int       // that lead to it from below the working directories
	By        string    // the caller that asked for it; empty if the host cannot tell
	At        time.Time // when it was made; zero if the host cannot tell
}

// Mapper is a host that can list mappings.
type Mapper interface {
	Mappings(ctx context.Context) ([]Mapping, error)
}

// SMB is the part of a host that maps shares of other machines.
type SMB interface {
	// NewSMBGlobalMapping maps the share of m.Remote, once for all its paths, and makes the link. A mapping that works is kept
	// for the credentials that it was made with. Other credentials are refused while the share is in use, and tried by mapping
	// the share anew when it is not: fs.ErrPermission if the host knows that they differ, ErrPrecondition if it cannot compare
	// them. No open file is closed. A link that leads there already is success; anything else at m.Local is fs.ErrExist. A
	// mapping that this call made goes away again if the link cannot be made.
	NewSMBGlobalMapping(ctx context.Context, m SMBMapping) error
	// RemoveSMBGlobalMapping removes the mapping of a share, for every pod that uses it; one that is not there is fs.ErrNotExist.
	RemoveSMBGlobalMapping(ctx context.Context, share Share) error
}
