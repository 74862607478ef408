package access

// Limits bound one caller: a container of a pod, or a process of the node. Zero means that no bound is set here; the limits of the proxy hold beside them.
type Limits struct {
	// Connections is how many connections to one pipe the caller may hold open. A driver needs two.
	Connections int `json:"connections,omitempty" yaml:"connections"`
	// CallsPerSecond is how many calls it may make on average, each rule counted by itself.
	CallsPerSecond int `json:"callsPerSecond,omitempty" yaml:"callsPerSecond"`
	// Burst is how many calls it may make at once after a pause, as many as CallsPerSecond if not set.
	Burst int `json:"burst,omitempty" yaml:"burst"`
}

// Bounds of what a Limits may say: beyond them it is a typing error, and bounds nothing.
const (
	mostConnections = 4096
	mostCalls       = 1_000_000
)

// Check reports every fault with the field that it is in.
func (l Limits) Check(add func(field, format string, args ...any)) {
	number := func(name string, n, most int) {
		if n < 0 || n > most {
			add(name, "%d: want 1 to %d", n, most)
		}
	}
	number("connections", l.Connections, mostConnections)
	number("callsPerSecond", l.CallsPerSecond, mostCalls)
	number("burst", l.Burst, mostCalls)
	if l.Burst > 0 && l.CallsPerSecond == 0 {
		add("burst", "bounds nothing without callsPerSecond")
	}
}

// Or fills in what l does not set. A rate and its burst belong together.
func (l Limits) Or(general Limits) Limits {
	if l.Connections == 0 {
		l.Connections = general.Connections
	}
	if l.CallsPerSecond == 0 {
		l.CallsPerSecond, l.Burst = general.CallsPerSecond, general.Burst
	}
	return l
}
