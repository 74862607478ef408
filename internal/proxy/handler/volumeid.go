package handler

import (
	"fmt"
	"strings"
)

// VolumeID names a volume as the mount manager does, \\?\Volume{GUID}\ with the GUID in lower case
// (https://learn.microsoft.com/windows/win32/fileio/naming-a-volume). Only [ParseVolumeID] should make one.
type VolumeID string

const (
	volumePrefix = `\\?\Volume{`
	volumeSuffix = `}\`
	guidForm     = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
)

// ParseVolumeID accepts exactly that form, in any case, and returns its one spelling. Nothing else that could name
// a device, a path or part of a query becomes a VolumeID.
func ParseVolumeID(s string) (VolumeID, error) {
	if len(s) != len(volumePrefix)+len(guidForm)+len(volumeSuffix) ||
		!strings.EqualFold(s[:len(volumePrefix)], volumePrefix) || !strings.HasSuffix(s, volumeSuffix) {
		return "", invalid("volume id %s is not of the form %s%s%s", quoted(s), volumePrefix, guidForm, volumeSuffix)
	}
	guid := s[len(volumePrefix) : len(s)-len(volumeSuffix)]
	for i := range len(guid) {
		if want := guidForm[i] == '-'; want != (guid[i] == '-') || !want && !isHexText(guid[i:i+1]) {
			return "", invalid("volume id %s is not of the form %s%s%s", quoted(s), volumePrefix, guidForm, volumeSuffix)
		}
	}
	return VolumeID(volumePrefix + strings.ToLower(guid) + volumeSuffix), nil
}

// quoted shows a text of a caller: cut, and with nothing in it that could end a line of a log.
func quoted(s string) string {
	const limit = 80
	if len(s) <= limit {
		return fmt.Sprintf("%q", s)
	}
	return fmt.Sprintf("%q[%d bytes cut]", s[:limit], len(s)-limit)
}
