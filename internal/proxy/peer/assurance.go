package peer

// Assurance says how far the identity of a caller was proven.
type Assurance string

// The steps of assurance, strongest first.
const (
	// AssurancePod means that the held process belongs to a job of exactly one container, and that the container runtime
	// named exactly one pod for it. The service account may still be unknown.
	AssurancePod Assurance = "pod"
	// AssuranceProcess means that the kernel named the caller's process and that
	// the process was held open while its user and image were read.
	AssuranceProcess Assurance = "process"
	// AssuranceSID means that the account is known and the process is not. Nothing in this package ends there.
	AssuranceSID Assurance = "sid"
	// AssuranceNone means that nothing is known about the caller.
	AssuranceNone Assurance = "none"
)

// AtLeast says whether a proves all that least asks for. An assurance that nobody has heard of proves nothing,
// and is reached by nobody.
func (a Assurance) AtLeast(least Assurance) bool {
	want := least.step()
	return want >= 0 && max(a.step(), 0) >= want
}

func (a Assurance) step() int {
	switch a {
	case AssurancePod:
		return 3
	case AssuranceProcess:
		return 2
	case AssuranceSID:
		return 1
	case AssuranceNone:
		return 0
	}
	return -1
}
