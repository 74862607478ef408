package pipeguard.node

# Who may do what the other rules refuse to everybody else is said by data.pipeguard.parameters.node.named, by group and
# operation. It is looked up by key, so that its size does not matter to a call. What cannot be read names nobody.

default is_named := false

# A pod, by its namespace and service account, both of which must be known.
is_named if {
	input.peer.assurance == "pod"
	pod := input.peer.pod
	pod.namespace != ""
	pod.serviceAccount != ""
	entries := data.pipeguard.parameters.node.named[input.group][input.operation].pods[pod.namespace][pod.serviceAccount]
	is_array(entries)
	some entry in entries
	is_object(entry)
	object.remove(entry, ["containers", "services"]) == {} # what is not understood may have meant a limit
	container_fits(object.get(entry, "containers", "*"))
	service_fits(object.get(entry, "services", "*"))
}

# A process of the node itself, by its account and its program: an account alone has many programs.
is_named if {
	input.peer.assurance == "process"
	input.peer.pod == null
	input.peer.container == null
	input.peer.user.sid != ""
	entries := data.pipeguard.parameters.node.named[input.group][input.operation].hosts[input.peer.user.sid]
	is_array(entries)
	some entry in entries
	is_object(entry)
	object.remove(entry, ["programs", "services"]) == {}
	program_fits(entry.programs)
	service_fits(object.get(entry, "services", "*"))
}

# A limit that is left out is "*". Any other is a list.
container_fits("*") := true

container_fits(list) if {
	is_array(list)
	input.peer.container.name in list
}

program_fits(list) if {
	is_array(list)
	some program in list
	same_name(program, input.peer.process.exe)
}

service_fits("*") := true

service_fits(list) if {
	is_array(list)
	some service in list
	same_name(service, input.request.name)
}

# Windows does not tell names by their case.
same_name(a, b) if {
	is_string(a)
	is_string(b)
	lower(a) == lower(b)
}
