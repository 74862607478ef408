//go:build !windows

package cluster

// SetProgram has replicas that are started from now on run another program, such as that of another release.
func (r *Release) SetProgram(webhook string) { r.options.Webhook = webhook }
