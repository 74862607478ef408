// Package config reads the files that tell the programs what to do.
// It trusts whoever may write them, and refuses every file that it does not understand to the last key.
package config
