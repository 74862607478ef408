// Package witness cosigns checkpoints of the nodes' audit logs and keeps the last one of each, so that a log that was rolled back is found.
// It trusts the API server to keep what it is given, the operator for keys of logs, and, where it is told to, the first key that a node names.
package witness

// What it needs of the API server:
//
//	group         | resources    | verbs               | who
//	""            | configmaps   | get, create, update | every replica, in the namespace of the memory
//	pipeguard.dev | guardednodes | get                 | every replica, if keys are trusted on first use
//	""            | nodes        | get                 | the same
