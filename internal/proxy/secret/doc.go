// Package secret takes the secrets of a request out of texts that others made of it.
// It trusts no text to repeat a secret only once, or only as it was sent.
package secret
