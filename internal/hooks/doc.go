// Package hooks brings the webhook configurations of the cluster into force, and keeps them so.
// It trusts the API server to store what it writes, and assumes that others may change it.
//
// The chart leaves out the rules of each entry, and an entry without rules asks about nothing: an installation whose
// replicas never start blocks no one. The leader fills the rules in once it serves and the API server reaches a replica.
// From then on they are never taken back for want of replicas, and put back when they are changed or removed.
//
// The first entries to get their rules are those about PodTemplates, which run nothing. They let the API server be asked, by
// a dry run, whether it reaches a replica before it asks about anything that matters. The same question is the canary that
// shows ever after that objects of a namespace are sent: a selector, another webhook or a firewall can be in the way.
package hooks
