// Package export puts audit records into the words of other systems: OCSF, ECS and CSV.
// It trusts no text of a record: what it writes forges no line and is no formula.
package export
