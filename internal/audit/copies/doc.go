// Package copies ships the records of the audit log and their checkpoints to other destinations: collectors, the Event Log, standard output.
// It trusts no destination: a slow, unreachable or broken one loses copies, which are counted, and delays nothing. It trusts no text of
// a record either: names, paths and errors may be an attacker's.
package copies
