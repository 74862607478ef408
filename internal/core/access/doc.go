// Package access says who may use what. It knows what a pattern matches, for admission and for the nodes.
package access
