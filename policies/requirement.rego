package pipeguard.admission

import data.pipeguard.parameters

# What the requirement asks of a mount, in two questions that are answered once for an object:
# does the namespace permit it, and does being privileged permit it? Neither holds if the parameters
# are missing, malformed or of an unknown value.

namespace_suffices if {
	parameters_valid
	parameters.requirement in {"PrivilegedOrAllowedNamespace", "AllowedNamespace"}
	namespace_allowed
}

privilege_suffices if {
	parameters_valid
	parameters.requirement == "PrivilegedOrAllowedNamespace"
}

privilege_suffices if {
	parameters_valid
	parameters.requirement == "PrivilegedAndAllowedNamespace"
	namespace_allowed
}

parameters_valid if {
	parameters.requirement in {
		"PrivilegedOrAllowedNamespace",
		"PrivilegedAndAllowedNamespace",
		"AllowedNamespace",
	}
	host_process_effects[parameters.hostProcess]
	allowed_namespaces_valid
}

allowed_namespaces_valid if is_object(parameters.allowedNamespaces)

allowed_namespaces_valid if is_null(parameters.allowedNamespaces)

# An object without namespace (a PersistentVolume) or without service account is in no allowed namespace.
# Names that are no strings are refused as malformed input.
namespace_allowed if {
	input.namespace != ""
	input.serviceAccount != ""
	is_object(parameters.allowedNamespaces)
	service_account_allowed(parameters.allowedNamespaces[input.namespace])
}

# An entry may leave the service accounts open, in the four ways below and in no other. A misspelt key
# is a condition that cannot be evaluated, so it allows none.
service_account_allowed(entry) if is_null(entry)

service_account_allowed(entry) if entry == {}

service_account_allowed(entry) if entry == {"serviceAccounts": null}

service_account_allowed(entry) if entry == {"serviceAccounts": []}

service_account_allowed(entry) if {
	is_object(entry)
	object.keys(entry) == {"serviceAccounts"}
	is_array(entry.serviceAccounts)
	input.serviceAccount in entry.serviceAccounts
}
