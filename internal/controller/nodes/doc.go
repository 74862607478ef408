// Package nodes reports in the status of each PipePolicy which nodes enforce it, and tells which nodes serve which pipes, from the GuardedNodes
// that nodes report. It trusts the API server to let a node report for itself alone, and a node to know itself.
package nodes

// What the parts need of the API server. The last column says who makes use of it.
//
//	group         | resources           | verbs                    | scope   | who
//	pipeguard.dev | guardednodes        | get, list, watch         | cluster | every replica
//	pipeguard.dev | guardednodes        | delete                   | cluster | the leader
//	pipeguard.dev | pipepolicies        | get, list, watch         | cluster | the leader
//	pipeguard.dev | pipepolicies/status | patch                    | cluster | the leader
//	""            | nodes               | get                      | cluster | the leader
//	""            | nodes               | list, patch              | cluster | the leader, with Options.Label alone
