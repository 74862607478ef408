// Package nodes says in the status of each PipePolicy on which nodes it decides, from what the nodes report of themselves.
// It trusts the API server to let a node report for itself alone, and a node to know itself.
package nodes

// What the parts need of the API server, on the leader:
//
//	group         | resources           | verbs                    | scope
//	pipeguard.dev | guardednodes        | get, list, watch, delete | cluster
//	pipeguard.dev | pipepolicies        | get, list, watch         | cluster
//	pipeguard.dev | pipepolicies/status | patch                    | cluster
//	""            | nodes               | get                      | cluster
