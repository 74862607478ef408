// Package floor says in CEL, for the API server itself to evaluate, what the webhook's built-in rules and PipePolicies refuse at least: the floor that holds while no replica
// of the webhook answers. It trusts nothing of an object: what is not provably harmless is refused.
//
// A floor is two ValidatingAdmissionPolicies, for pods and what makes them, and for PersistentVolumes, each with its binding. It never admits what the webhook would refuse by
// the same policies, but for PolicyModules, which CEL cannot say. It refuses more: see "The floor" in docs/operators-guide.md for the classes.
package floor
