// Package winsvc runs a function until the Windows service manager, or the person at the console, wants it to end.
// It trusts neither to say how it was started: a flag decides.
package winsvc
