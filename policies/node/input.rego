package pipeguard.node

# METADATA
# title: The input has a form that these policies do not know
# description: >-
#   A part that the rules read is missing or has the wrong type. A rule cannot find what it cannot read, so the call
#   is refused.
# custom:
#   code: PN000
#   severity: critical
#   docs: https://github.com/pipeguard/pipeguard/blob/main/docs/rules.md#pn000
#   remedy: Run the proxy and the policies of the same release.
findings contains {"code": "PN000", "effect": "deny"} if not well_formed

# The proxy makes inputs of one form. These conditions are the parts of it that the rules depend on.
well_formed if {
	is_string(input.group)
	input.group != ""
	is_string(input.operation)
	input.operation != ""
	type_name(input.request) in {"object", "null"} # null: the call is passed on unread
	is_object(input.peer)
	is_boolean(input.named)
}

# The exceptions to the other rules are decided before this policy is asked: a caller is exempt if a rule of the access list
# that covers the call names it.
default is_named := false

is_named if input.named == true
