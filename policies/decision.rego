# METADATA
# title: Admission of objects that carry Windows named pipes
# description: >-
#   Every rule adds to the set `findings`. One finding that denies, or one whose effect is unknown,
#   refuses the object. To add a rule, add a file to this package.
package pipeguard.admission

# METADATA
# title: Decision
# description: The one document that the webhook evaluates.
# entrypoint: true
decision := {"allowed": allowed, "findings": findings}

default allowed := false

# Effects that let an object pass are listed, so that a misspelt effect refuses.
allowed if {
	every finding in findings {
		finding.effect in {"warn", "audit"}
	}
}

# An entry without a usable field path must still make a finding: in a rule's head a missing value
# would make the finding vanish.
default field_of(_) := ""

field_of(entry) := entry.field if is_string(entry.field)
