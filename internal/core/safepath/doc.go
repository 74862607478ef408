// Package safepath accepts the paths in requests that lie within the working directories, and no others.
// It is text work alone and gives the same answer on every OS; it trusts the working directories it was
// made with, and knows nothing of links: code that opens a [Path] must refuse those on the way.
package safepath
