package pipeguard.node

# METADATA
# title: The input is not what these policies know
# description: >-
#   A part that the rules read is missing or has the wrong type. A rule cannot find what it cannot read, so the call
#   is refused.
# custom:
#   code: PN000
#   severity: critical
#   docs: https://github.com/pipeguard/pipeguard/blob/main/docs/rules.md#pn000
#   remedy: Run the proxy and the policies of the same release.
findings contains {"code": "PN000", "effect": "deny"} if not well_formed

# The proxy makes inputs of one form. What is asked here is what the rules rest on.
well_formed if {
	is_string(input.group)
	input.group != ""
	is_string(input.operation)
	input.operation != ""
	type_name(input.request) in {"object", "null"} # null: the call is passed on unread
	is_object(input.peer)
	is_boolean(input.named)
}

# Who may do what the other rules refuse to everybody else is found before this policy is asked: a rule of the access list that
# covers the call names its caller.
default is_named := false

is_named if input.named == true
