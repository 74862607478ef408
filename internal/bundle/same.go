package bundle

import (
	"bytes"
	"maps"
)

// SameContent says whether two bundles differ in nothing but revisions and times.
func SameContent(a, b Bundle) bool {
	if a.Audience != b.Audience || a.PolicyRevision != b.PolicyRevision || a.MinimumRevision != b.MinimumRevision {
		return false
	}
	one, err := a.files()
	if err != nil {
		return false
	}
	other, err := b.files()
	if err != nil {
		return false
	}
	delete(one, manifestFile)
	delete(other, manifestFile)
	return maps.EqualFunc(one, other, bytes.Equal)
}
