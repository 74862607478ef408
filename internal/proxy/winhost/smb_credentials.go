package winhost

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/proxy/handler"
)

// credentials remember with which credentials this proxy mapped shares, without knowing them: what is kept is a digest under
// a random key that dies with the run of Windows, at the latest.
type credentials struct {
	key    [32]byte
	memory memory
	log    *zap.Logger

	mu sync.Mutex
	of map[handler.Share]made // guarded by mu; at most maxRemembered
}

// maxRemembered bounds the shares whose credentials are remembered, and so the mappings that are made at the request of
// callers. Windows runs out of memory for mappings in the hundreds (csi-driver-smb issue 1039).
const maxRemembered = 1024

// comparison is what can be said of the credentials of a mapping.
type comparison int

const (
	untold    comparison = iota // this proxy did not make the mapping since Windows started
	unchanged                   // it was made with these
	changed                     // it was made with others
)

func (c *credentials) digest(m handler.SMBMapping) (sum [sha256.Size]byte) {
	mac := hmac.New(sha256.New, c.key[:])
	// The length keeps the end of the name from being taken for the beginning of the password.
	_, _ = mac.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(m.Username))))
	_, _ = mac.Write([]byte(m.Username))
	_, _ = mac.Write([]byte(m.Password.Reveal()))
	mac.Sum(sum[:0])
	return sum
}

func (c *credentials) compare(share handler.Share, m handler.SMBMapping) comparison {
	sum := c.digest(m)
	c.mu.Lock()
	defer c.mu.Unlock()
	old, known := c.of[share]
	switch {
	case !known:
		return untold
	case hmac.Equal(old.Sum[:], sum[:]):
		return unchanged
	}
	return changed
}

func (c *credentials) remember(share handler.Share, m handler.SMBMapping) {
	sum := c.digest(m)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of[share] = made{sum, clip(m.By), time.Now().UTC().Truncate(time.Second)}
	c.keep()
}

// clip bounds a text that is remembered.
func clip(text string) string {
	const limit = 256
	return strings.ToValidUTF8(text[:min(len(text), limit)], "")
}

// hasRoom says whether a share can be remembered.
func (c *credentials) hasRoom(share handler.Share) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, known := c.of[share]
	return known || len(c.of) < maxRemembered
}

// retain forgets the shares that are not there any more.
func (c *credentials) retain(there map[handler.Share]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.of, func(share handler.Share, _ made) bool { return !there[share] })
	c.keep()
}

func (c *credentials) forget(share handler.Share) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.of[share]; known {
		delete(c.of, share)
		c.keep()
	}
}

// maker is the caller that asked for a mapping, and when. Both are empty for mappings that this proxy did not make.
func (c *credentials) maker(share handler.Share) (by string, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.of[share]
	return m.By, m.At
}

// escapes are those of the name in user:password.
var escapes = strings.NewReplacer(`\`, `\\`, `:`, `\:`)

// credential is how the provider takes a name and a password.
func credential(m handler.SMBMapping) string {
	return escapes.Replace(m.Username) + ":" + m.Password.Reveal()
}
