// Package segment keeps an audit log as a directory of segments, each record durable before it is acknowledged.
// It trusts the directory to be its own: whoever else can write there can only be found out by the signed checkpoints.
package segment
