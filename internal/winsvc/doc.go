// Package winsvc runs a function until the Windows service manager or a console signal stops it.
// It trusts neither to say how it was started: a flag decides.
package winsvc
