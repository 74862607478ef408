package winsvc

import "fmt"

// Protection is a mitigation of Windows that a process has turned on for itself.
type Protection struct {
	Name string `json:"name"`
	On   bool   `json:"on"`
	// Reason is why it is not on, or why nothing is known about it.
	Reason string `json:"reason,omitempty"`
}

// Power is the privileges and protections of a process.
type Power struct {
	// Privileges are all that its token holds, enabled or not, in order.
	Privileges  []string     `json:"privileges"`
	Protections []Protection `json:"protections"`
}

// mitigation is a PROCESS_MITIGATION_POLICY with the flag that turns it on.
// https://learn.microsoft.com/windows/win32/api/winnt/ne-winnt-process_mitigation_policy
type mitigation struct {
	name   string
	policy uint32
	flag   uint32
}

// mitigations are what a service asks for. Neither can be taken back by the process.
var mitigations = []mitigation{
	// ProcessChildProcessPolicy, NoChildProcessCreation; Windows 10 1709, Server 2019. The page of SetProcessMitigationPolicy does not say
	// whether a process may set it for itself, so what Windows says afterwards is what counts.
	// https://learn.microsoft.com/windows-hardware/drivers/ddi/ntddk/ns-ntddk-_process_mitigation_child_process_policy
	{"no child processes", 13, 1},
	// ProcessRedirectionTrustPolicy, EnforceRedirectionTrust: junctions that accounts without administrator's rights made are not
	// followed. Not every Windows that we support has it.
	// https://learn.microsoft.com/windows/win32/api/winnt/ns-winnt-process-mitigation-redirection-trust-policy
	{"redirection trust", 16, 1},
}

// harden asks for every mitigation and returns what holds afterwards. One that is refused does not keep the others away.
func harden(set func(policy, flags uint32) error, get func(policy uint32) (flags uint32, err error)) []Protection {
	refused := make(map[uint32]error, len(mitigations))
	for _, m := range mitigations {
		refused[m.policy] = set(m.policy, m.flag)
	}
	now := protections(get)
	for i, m := range mitigations {
		switch err := refused[m.policy]; {
		case now[i].On:
		case err != nil:
			now[i].Reason = fmt.Sprintf("Windows refused it: %v", err)
		case now[i].Reason == "":
			now[i].Reason = "Windows accepted it and does not apply it"
		}
	}
	return now
}

// protections returns what holds for a process.
func protections(get func(policy uint32) (flags uint32, err error)) []Protection {
	list := make([]Protection, 0, len(mitigations))
	for _, m := range mitigations {
		flags, err := get(m.policy)
		p := Protection{Name: m.name, On: err == nil && flags&m.flag != 0}
		if err != nil {
			p.Reason = fmt.Sprintf("Windows does not say: %v", err)
		}
		list = append(list, p)
	}
	return list
}
