// Package skew runs the programs of this release and of the one before against each other: what one writes, the other reads, continues or
// refuses in words that say what to do. docs/versions.md says the same to operators.
package skew
