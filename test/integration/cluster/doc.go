// Package cluster starts a real API server and webhooks in front of it, for tests and measurements.
// It trusts the programs that it starts, and nothing that they print: what a test believes it asks the API server.
//
// There is nothing of it for Windows, where no control plane runs.
package cluster
