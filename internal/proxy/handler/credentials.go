package handler

import (
	"strings"
	"unicode"
)

// maxCredential bounds names of users and secrets, in bytes. Windows takes less
// (https://learn.microsoft.com/windows/win32/api/wincred/ns-wincred-credentialw).
const maxCredential = 512

// checkUsername refuses what no user can be called. The name is not a secret.
func checkUsername(what, name string) error {
	switch {
	case len(name) > maxCredential:
		return invalid("%s %s is longer than %d bytes", what, quoted(name), maxCredential)
	case hasControl(name):
		return invalid("%s %s contains control characters", what, quoted(name))
	}
	return nil
}

// checkSecret says nothing of the text itself.
func checkSecret(what, text string, limit int) (Secret, error) {
	switch {
	case len(text) > limit:
		return Secret{}, invalid("%s is longer than %d bytes", what, limit)
	case hasControl(text):
		return Secret{}, invalid("%s contains control characters", what)
	}
	return NewSecret(text), nil
}

func hasControl(s string) bool { return strings.ContainsFunc(s, unicode.IsControl) }
