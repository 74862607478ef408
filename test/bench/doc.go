//go:build linux

// Command bench measures what the webhook costs: what it adds to requests through a real API server, beside no policy and
// beside the nearest ValidatingAdmissionPolicy, what a review takes of one core, and what the process holds in memory.
// It trusts nothing that was not answered as it must be: a wrong verdict ends the run, so that no figure is of a webhook that
// does not judge.
package main
