package pipeguard.node

# Who may do what the other rules refuse to everybody else is said by data.pipeguard.parameters.node.named, by group and
# operation. It is looked up by key, so that its size does not matter to a call. What cannot be read names nobody: an entry has
# the limits that are asked about here and nothing else, for what is not understood may have meant one.

default is_named := false

# A pod, by its namespace and service account, both of which must be known.
is_named if {
	input.peer.assurance == "pod"
	pod := input.peer.pod
	entries := data.pipeguard.parameters.node.named[input.group][input.operation].pods[pod.namespace][pod.serviceAccount]
	pod.namespace != ""
	pod.serviceAccount != ""
	is_array(entries)
	some entry in entries
	is_object(entry)
	{"containers": containers, "services": services, "until": until} := object.union({"containers": "*", "services": "*", "until": "*"}, entry)
	container_fits(containers)
	service_fits(services)
	has_not_ended(until)
}

# A container of any pod of a namespace, for nodes that cannot learn service accounts: its name must be said.
is_named if {
	input.peer.assurance == "pod"
	pod := input.peer.pod
	entries := data.pipeguard.parameters.node.named[input.group][input.operation].pods[pod.namespace]["*"]
	pod.namespace != ""
	is_array(entries)
	some entry in entries
	is_object(entry)
	{"containers": containers, "services": services, "until": until} := object.union({"services": "*", "until": "*"}, entry)
	is_array(containers)
	container_fits(containers)
	service_fits(services)
	has_not_ended(until)
}

# A process of the node itself, by its account and its program: an account alone has many programs.
is_named if {
	input.peer.assurance == "process"
	input.peer.pod == null
	input.peer.container == null
	entries := data.pipeguard.parameters.node.named[input.group][input.operation].hosts[input.peer.user.sid]
	input.peer.user.sid != ""
	is_array(entries)
	some entry in entries
	is_object(entry)
	{"programs": programs, "services": services} := object.union({"services": "*"}, entry)
	program_fits(programs)
	service_fits(services)
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

# A permission may end, although another rule of the access list goes on to allow the same caller all that it does. Both times
# are of one form, and so compare as texts.
has_not_ended("*") := true

has_not_ended(until) if {
	is_time(until)
	is_time(input.now)
	input.now < until
}

is_time(text) if {
	is_string(text)
	regex.match(`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$`, text)
}

# Windows does not tell names by their case.
same_name(a, b) if {
	is_string(a)
	is_string(b)
	lower(a) == lower(b)
}
