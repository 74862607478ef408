// Package strict reads a line as a record of this version to the letter, so that no two readers understand it differently.
package strict
