// Package nodes reports in the status of each PipePolicy which nodes enforce it, from the GuardedNodes that nodes report.
// It trusts the API server to let a node report for itself alone, and a node to know itself.
package nodes

// What the parts need of the API server, on the leader:
//
//	group         | resources           | verbs                    | scope
//	pipeguard.dev | guardednodes        | get, list, watch, delete | cluster
//	pipeguard.dev | pipepolicies        | get, list, watch         | cluster
//	pipeguard.dev | pipepolicies/status | patch                    | cluster
//	""            | nodes               | get                      | cluster
