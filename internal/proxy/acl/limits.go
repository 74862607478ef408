package acl

// Bounds of what a Limits may say: beyond them it is a typing error, and bounds nothing.
const (
	mostConnections = 4096
	mostCalls       = 1_000_000
)

func checkLimits(field string, l Limits, faults *Faults) {
	number := func(name string, n, most int) {
		if n < 0 || n > most {
			faults.add(field+"."+name, "%d: want 1 to %d", n, most)
		}
	}
	number("connections", l.Connections, mostConnections)
	number("callsPerSecond", l.CallsPerSecond, mostCalls)
	number("burst", l.Burst, mostCalls)
	if l.Burst > 0 && l.CallsPerSecond == 0 {
		faults.add(field+".burst", "bounds nothing without callsPerSecond")
	}
}

// or fills in what l does not set. A rate and its burst belong together.
func (l Limits) or(general Limits) Limits {
	if l.Connections == 0 {
		l.Connections = general.Connections
	}
	if l.CallsPerSecond == 0 {
		l.CallsPerSecond, l.Burst = general.CallsPerSecond, general.Burst
	}
	return l
}

// Connections returns how many connections to a pipe the caller may hold open: what the first rule for the pipe that names
// the caller and sets a number says, else what holds for all callers; 0 if neither does. Before a call it is not known
// which rule will decide, so operations and paths are not asked.
func (p *Policy) Connections(group, version string, who Caller) int {
	q := query{group: group, version: version, caller: foldCaller(who), goal: goalConnections}
	if i, ok := p.find(&q); ok {
		return p.rules[i].limits.Connections
	}
	return p.limits.Connections
}
