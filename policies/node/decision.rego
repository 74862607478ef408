# METADATA
# title: Admission of calls on the pipes of a node
# description: >-
#   Evaluated after the access list has allowed a call. Every rule adds to the set `findings`. One finding that denies, or
#   one whose effect is unknown, refuses the call. To add a rule, add a file to this package.
package pipeguard.node

# METADATA
# title: Decision
# description: The one document that the proxy evaluates.
# entrypoint: true
decision := {"allowed": allowed, "findings": findings}

default allowed := false

# Effects that let a call pass are listed, so that a misspelt effect refuses.
allowed if {
	every finding in findings {
		finding.effect in {"warn", "audit"}
	}
}
