// Package export formats audit records for other systems: OCSF, ECS and CSV.
// It trusts no text of a record: no text can forge a line or start a spreadsheet formula.
package export
