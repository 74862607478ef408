// Package entries describes the entries of the webhook configurations: what they are called, which rules they have once in force, whether another hand has
// changed them, and what an API server's answer says of them.
//
// The chart makes the entries without rules; package hooks gives them their rules and keeps them; the command line compares what a cluster has.
package entries
