package pipeguard.node_test

import data.pipeguard.node

refused_with(asked, parameters) if {
	not node.is_named with input as asked with data.pipeguard.parameters.node as parameters
	node.findings == {{"code": "PN001", "effect": "deny"}} with input as asked with data.pipeguard.parameters.node as parameters
}

allowed_with(asked, parameters) if {
	node.is_named with input as asked with data.pipeguard.parameters.node as parameters
	node.decision == {"allowed": true, "findings": set()} with input as asked with data.pipeguard.parameters.node as parameters
}

names_driver := naming(stop(driver), [{}], [])

names_agent := naming(stop(host), [], agent)

test_a_named_pod_is_allowed if allowed_with(stop(driver), names_driver)

test_a_named_program_is_allowed if allowed_with(stop(host), names_agent)

test_to_be_named_for_one_operation_is_not_to_be_named_for_another if {
	refused_with(start(driver), names_driver)
	refused_with(start(host), names_agent)
}

test_to_be_named_for_another_group_is_not_to_be_named if {
	every group in ["", "disk", "System"] {
		refused_with(stop(driver), {"named": {group: names_driver.named.system}})
		refused_with(stop(host), {"named": {group: names_agent.named.system}})
	}
}

test_the_operation_counts_and_not_the_name_that_was_served if {
	refused_with(replaced(start(driver), {"method": "StopService"}), names_driver)
	allowed_with(replaced(stop(driver), {"method": "Halt"}), names_driver)
	refused_with(replaced(start(host), {"method": "StopService"}), names_agent)
	allowed_with(replaced(stop(host), {"method": "Halt"}), names_agent)
}

test_data_that_cannot_be_read_names_nobody if {
	every parameters in [null, "x", 1, [], {}, {"named": null}, {"named": "x"}, {"named": {"system": null}}, {"named": {"system": {"StopService": null}}}, {"named": {"system": {"StopService": true}}}, {"named": {"system": {"StopService": {"pods": "x", "hosts": "x"}}}}] {
		every peer in [driver, host, nobody] {
			refused_with(stop(peer), parameters)
		}
	}
}

test_entries_that_cannot_be_read_name_nobody if {
	every entries in [null, "x", true, {}, [], [null], ["x"], [{"services": null}], [{"services": false}], [{"services": "MSiSCSI"}], [{"services": {"MSiSCSI"}}], [{"services": []}], [{"services": [1]}], [{"expires": "never"}]] {
		refused_with(stop(driver), naming(stop(driver), entries, []))
		refused_with(stop(host), naming(stop(host), [], entries))
	}
}

test_an_object_of_entries_names_nobody if {
	refused_with(stop(driver), naming(stop(driver), {"a": {}}, []))
	refused_with(stop(host), naming(stop(host), [], {"a": agent[0]}))
}

test_other_pods_are_not_named if {
	every change in [{"namespace": "shop"}, {"namespace": ""}, {"serviceAccount": "default"}, {"serviceAccount": ""}, {"namespace": "Kube-System"}, {"namespace": 1}, {"serviceAccount": null}] {
		refused_with(stop(replaced(driver, {"pod": replaced(driver.pod, change)})), names_driver)
	}
}

test_empty_names_are_no_names_even_if_data_has_them if {
	parameters := {"named": {"system": {"StopService": {"pods": {"": {"driver": [{}], "": [{}]}, "kube-system": {"": [{}]}}, "hosts": {"": agent}}}}}
	every change in [{"namespace": ""}, {"serviceAccount": ""}, {"namespace": "", "serviceAccount": ""}] {
		refused_with(stop(replaced(driver, {"pod": replaced(driver.pod, change)})), parameters)
	}
	refused_with(stop(replaced(host, {"user": {"sid": "", "name": ""}})), parameters)
}

test_a_pod_needs_its_assurance if {
	every assurance in ["none", "sid", "process", "", "Pod", null, 3, ["pod"]] {
		refused_with(stop(replaced(driver, {"assurance": assurance})), names_driver)
	}
}

test_a_host_process_needs_its_assurance_and_no_container if {
	every assurance in ["none", "sid", "pod", "", "kernel", null, 3] {
		refused_with(stop(replaced(host, {"assurance": assurance})), names_agent)
	}
	refused_with(stop(replaced(host, {"pod": driver.pod})), names_agent)
	refused_with(stop(replaced(host, {"container": driver.container})), names_agent)
}

test_another_account_or_program_is_not_named if {
	refused_with(stop(replaced(host, {"user": {"sid": "S-1-5-19", "name": ""}})), names_agent)
	every exe in ["", `C:\Tools\Agent.exe.exe`, `Agent.exe`, `D:\Tools\Agent.exe`] {
		refused_with(stop(replaced(host, {"process": {"pid": 1, "exe": exe}})), names_agent)
	}
}

test_an_account_without_programs_names_nobody if {
	every entry in [{}, {"programs": []}, {"programs": null}, {"programs": `C:\Tools\Agent.exe`}, {"programs": {`C:\Tools\Agent.exe`}}, {"programs": {"a": `C:\Tools\Agent.exe`}}] {
		refused_with(stop(host), naming(stop(host), [], [entry]))
	}
}

test_a_container_may_be_asked_for if {
	allowed_with(stop(driver), naming(stop(driver), [{"containers": ["other", "plugin"]}], []))
	every containers in [["other"], [], ["Plugin"], "plugin", {"a": "plugin"}, null, false] {
		refused_with(stop(driver), naming(stop(driver), [{"containers": containers}], []))
	}
	refused_with(stop(replaced(driver, {"container": null})), naming(stop(driver), [{"containers": ["plugin"]}], []))
}

test_a_service_may_be_asked_for if {
	entry := {"services": ["lanmanworkstation", "msiscsi"]}
	allowed_with(stop(driver), naming(stop(driver), [entry], []))
	allowed_with(stop(host), naming(stop(host), [], [object.union(entry, agent[0])]))
	every name in ["", "winrm", "msiscsi ", null, 1, ["msiscsi"]] {
		refused_with(replaced(stop(driver), {"request": {"name": name}}), naming(stop(driver), [entry], []))
	}
	refused_with(replaced(stop(driver), {"request": null}), naming(stop(driver), [entry], []))
	refused_with(stop(host), naming(stop(host), [], [{"programs": agent[0].programs, "services": ["winrm"]}]))
	refused_with(stop(driver), naming(stop(driver), [{"services": {"a": "msiscsi"}}], []))
}

test_an_entry_may_end if {
	every until in ["2026-01-02T03:04:06Z", "2026-12-31T00:00:00Z", "9999-12-31T23:59:59Z"] {
		allowed_with(stop(driver), naming(stop(driver), [{"until": until}], []))
	}
	every until in ["2026-01-02T03:04:05Z", "2026-01-02T03:04:04Z", "0001-01-01T00:00:00Z", "tomorrow", "2027", "", null, false, 9999, ["*"], "2027-01-01T00:00:00Z ", "2027-01-01T00:00:00+01:00", "x2027-01-01T00:00:00Z", "*x"] {
		refused_with(stop(driver), naming(stop(driver), [{"until": until}], []))
	}
	allowed_with(stop(driver), naming(stop(driver), [{"until": "2026-01-01T00:00:00Z"}, {"until": "2027-01-01T00:00:00Z"}], []))
}

test_without_a_time_what_may_end_has_ended if {
	every now in ["", "2026-01-02", "x", "2026-01-02T03:04:05+00:00", null, 0, ["2026-01-02T03:04:05Z"]] {
		refused_with(replaced(stop(driver), {"now": now}), naming(stop(driver), [{"until": "2027-01-01T00:00:00Z"}], []))
	}
	refused_with(object.remove(stop(driver), ["now"]), naming(stop(driver), [{"until": "2027-01-01T00:00:00Z"}], []))
}

test_one_entry_of_several_suffices_and_limits_do_not_mix if {
	allowed_with(stop(driver), naming(stop(driver), [{"containers": ["other"]}, {"services": ["msiscsi"]}], []))
	refused_with(stop(driver), naming(stop(driver), [{"containers": ["plugin"], "services": ["winrm"]}, {"containers": ["other"], "services": ["msiscsi"]}], []))
}

test_an_entry_of_one_kind_does_not_serve_the_other if {
	refused_with(stop(driver), naming(stop(driver), agent, []))
	refused_with(stop(host), naming(stop(host), [], [{"programs": agent[0].programs, "containers": ["plugin"]}]))
}

test_a_caller_that_cannot_be_read_is_not_named if {
	every key in ["assurance", "process", "user", "pod", "container"] {
		every value in ["x", 1, true, ["x"], {}] {
			refused_with(stop(replaced(host, {key: value})), names_agent)
		}
		refused_with(stop(object.remove(host, {key})), names_agent)
	}
}

test_a_pod_that_cannot_be_read_is_not_named if {
	every key in ["assurance", "pod", "container"] {
		every value in ["x", 1, true, ["x"], {}, null] {
			refused_with(stop(replaced(driver, {key: value})), naming(stop(driver), [{"containers": ["plugin"]}], []))
		}
		refused_with(stop(object.remove(driver, {key})), naming(stop(driver), [{"containers": ["plugin"]}], []))
	}
}

# naming_any names a container of any pod of a namespace.
naming_any(asked, entries) := {"named": {asked.group: {asked.operation: {"pods": {"kube-system": {"*": entries}}}}}}

test_a_container_may_be_named_without_an_account if {
	every account in ["driver", "other", ""] {
		allowed_with(stop(replaced(driver, {"pod": replaced(driver.pod, {"serviceAccount": account})})), naming_any(stop(driver), [{"containers": ["plugin"]}]))
	}
	allowed_with(stop(driver), naming_any(stop(driver), [{"containers": ["plugin"], "services": ["msiscsi"], "until": "2026-12-31T00:00:00Z"}]))
}

test_without_an_account_the_container_must_be_said if {
	every entry in [{}, {"services": ["msiscsi"]}, {"containers": "*"}, {"containers": []}, {"containers": null}, {"containers": ["*"]}, {"containers": ["other"]}, {"containers": {"a": "plugin"}}, {"containers": ["plugin"], "x": 1}, {"containers": ["plugin"], "services": ["winrm"]}, {"containers": ["plugin"], "until": "2026-01-01T00:00:00Z"}] {
		refused_with(stop(driver), naming_any(stop(driver), [entry]))
	}
}

test_without_an_account_the_rest_must_hold if {
	parameters := naming_any(stop(driver), [{"containers": ["plugin"]}])
	refused_with(start(driver), parameters)
	refused_with(stop(host), parameters)
	every assurance in ["none", "sid", "process", ""] {
		refused_with(stop(replaced(driver, {"assurance": assurance})), parameters)
	}
	every namespace in ["shop", "", "*", null] {
		refused_with(stop(replaced(driver, {"pod": replaced(driver.pod, {"namespace": namespace})})), parameters)
	}
	refused_with(stop(replaced(driver, {"pod": replaced(driver.pod, {"namespace": ""})})), {"named": {"system": {"StopService": {"pods": {"": {"*": [{"containers": ["plugin"]}]}}}}}})
	refused_with(stop(replaced(driver, {"container": null})), parameters)
	every entries in [null, "x", {}, [], [null], {"a": {"containers": ["plugin"]}}] {
		refused_with(stop(driver), naming_any(stop(driver), entries))
	}
}
