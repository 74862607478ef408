package pipeguard.admission

import data.pipeguard.parameters

# The requirement for a mount, as two conditions that are evaluated once for an object: whether the namespace
# permits it, and whether being privileged permits it. Neither holds if the parameters are missing, malformed
# or have an unknown value.

namespace_suffices if {
	namespace_allowed
	parameters.requirement != "PrivilegedAndAllowedNamespace"
	parameters_valid
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
	parameters.requirement in {"PrivilegedOrAllowedNamespace", "PrivilegedAndAllowedNamespace", "AllowedNamespace"}
	parameters.hostProcess in {"Ignore", "Audit", "Warn", "Deny"}
	parameters.equalPower in {"Ignore", "Audit", "Warn", "Deny"}
	parameters.hostPaths in {"Ignore", "Audit", "Warn", "Deny"}
	type_name(parameters.allowedNamespaces) in {"object", "null"}
}

# An object without namespace (a PersistentVolume) or without service account is in no allowed namespace.
# Names that are not strings are refused as malformed input.
namespace_allowed if {
	input.namespace != ""
	input.serviceAccount != ""
	is_object(parameters.allowedNamespaces)
	service_account_allowed(parameters.allowedNamespaces[input.namespace])
}

# A misspelt key is a condition that cannot be evaluated, so the entry allows no namespace.
service_account_allowed(entry) if {
	is_array(entry.serviceAccounts)
	count(entry) == 1
	input.serviceAccount in entry.serviceAccounts
}

# An entry may allow any service account, in these two forms only.
service_account_allowed(entry) if entry in {null, {}, {"serviceAccounts": null}, {"serviceAccounts": []}}
