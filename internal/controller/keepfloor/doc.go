// Package keepfloor keeps the floor of package floor in a cluster: it writes it from the policies that decide, and puts it back when somebody else has changed or removed it.
// It trusts the API server's answers, and nobody who writes there.
package keepfloor

// What it needs of the API server. Objects are created by server-side apply, whose requests have a name, so that rights can be limited to the names of the floor.
//
//	group                        | resources                                                                   | verbs                                           | scope                | who
//	admissionregistration.k8s.io | validatingadmissionpolicies, validatingadmissionpolicybindings              | get, list, watch, create, update, patch, delete | names of the floor   | the leader
//	rbac.authorization.k8s.io    | clusterroles                                                                | get                                             | name of the owner    | the leader
