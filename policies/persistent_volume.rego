package pipeguard.admission

# METADATA
# title: A PersistentVolume leads to a guarded pipe
# description: >-
#   A pod that claims the volume shows the claim and not the path, so that its own review cannot refuse it. There are no
#   exceptions, because a volume has no namespace and no service account. No CSI driver needs such a volume.
#   The strictest action of the PipePolicies that govern the pipe sets the effect, or the parameter action if none does.
# custom:
#   code: PG007
#   severity: critical
#   docs: https://github.com/pipeguard/pipeguard/blob/main/docs/rules.md#pg007
#   remedy: Delete the volume, or give it another path.
findings contains {"code": "PG007", "effect": effect_of(volume), "field": field_of(volume)} if {
	some volume in input.persistentVolumes
	not volume.guarded == false
	volume.neverAllowed == false # otherwise it is a PG003
}
