// Package packaging checks the scripts that administrators install the proxy with.
// It reads them only: what they do is tried on Windows.
package packaging
