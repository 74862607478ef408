// Package jsonscan reads one JSON text in a single pass, with exact, case-sensitive keys and a bounded depth.
// It trusts nothing: whatever it accepts is valid JSON, and every string it hands out is the one that encoding/json would.
package jsonscan
