// Package publish gives the policies of a cluster to its nodes: one signed bundle for each pool, in a ConfigMap and over HTTP.
// It trusts the API server to keep what it is given, and nodes to believe nothing but the signature.
package publish

// What the parts need of the API server, in the namespace of the ConfigMaps:
//
//	group | resources  | verbs               | who
//	""    | configmaps | get, create, update | the leader, by the names of the pools
//	""    | configmaps | get                 | every replica
