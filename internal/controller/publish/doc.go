// Package publish signs the policies of a cluster and delivers them to its nodes: one bundle for each pool, in a ConfigMap and over HTTP.
// It trusts the API server to store bundles unchanged; nodes verify the signature.
package publish

// What the parts need of the API server, in the namespace of the ConfigMaps:
//
//	group | resources  | verbs               | who
//	""    | configmaps | get, create, update | the leader, by the names of the pools
//	""    | configmaps | get                 | every replica
