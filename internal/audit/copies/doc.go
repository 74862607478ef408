// Package copies gives the records of the audit log, and the checkpoints over them, to places beside the log.
// It trusts no place: one that is slow, away or broken loses copies, which are counted, and holds nobody up. It trusts no text of
// a record either: names, paths and errors may be an attacker's.
package copies
