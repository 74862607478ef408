package pipeguard.node

# METADATA
# title: The volumes of this namespace are formatted between 07:00 and 17:00 UTC only
# description: Somebody has to be there when a driver formats the wrong volume.
# custom:
#   code: HOUSE1
#   severity: medium
#   docs: https://wiki.example.com/house1
#   remedy: Wait for 07:00 UTC.
findings contains {"code": "HOUSE1", "effect": "deny"} if {
	input.group == "volume"
	input.operation == "FormatVolume"
	input.peer.pod.namespace == "team-a"
	not house_is_open
}

# Names of one's own begin with a word of one's own: those of the built-in policy are taken. The time of a call is in UTC.
house_is_open if {
	hour := substring(input.now, 11, 2)
	hour >= "07"
	hour < "17"
}
