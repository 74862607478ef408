// Package segment keeps an audit log as a directory of segments, each record durable before it is acknowledged.
// It trusts the directory to be its own: changes by another writer are detected only by the signed checkpoints.
package segment
