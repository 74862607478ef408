package access

// Limits bound one caller: a container of a pod, or a process of the node. Zero means that no bound is set here.
type Limits struct {
	Connections    int `json:"connections,omitempty"`    // open connections to one pipe
	CallsPerSecond int `json:"callsPerSecond,omitempty"` // on average
	Burst          int `json:"burst,omitempty"`          // calls at once after a pause; CallsPerSecond if it is 0
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
