// Package controller activates the cluster's policies on each replica of the webhook and reports the result in their status.
// It trusts the API server's copy of the objects, and the Leases of the replicas for what these decide by.
package controller

// What the parts need of the API server. All run with one service account; the last column says who makes use of it.
//
//	group                | resources                                         | verbs                                  | scope         | who
//	pipeguard.dev        | pipepolicies, policymodules                       | get, list, watch                       | cluster       | every replica
//	pipeguard.dev        | pipepolicies/status, policymodules/status         | patch                                  | cluster       | the leader
//	events.k8s.io        | events                                            | create, patch                          | default       | the leader
//	coordination.k8s.io  | leases                                            | get, list, watch, create, patch, delete | own namespace | every replica
//	""                   | pods                                              | get                                    | own namespace | every replica
//
// Events about objects without a namespace are kept in the namespace default. Leader election needs
// "update" on leases, and create and patch on events in its own namespace, besides.
