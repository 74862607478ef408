// Package order lets operations that touch one object of the host follow each other, and the others run side by side.
// It trusts its callers to leave what they have entered; those who do not keep their place and are counted.
package order
