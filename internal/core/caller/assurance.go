package caller

// Assurance says how far the identity of a caller was proven.
type Assurance string

const (
	// AssurancePod means that the held process belongs to a job of exactly one container, and that the container runtime
	// named exactly one pod for it. The service account may still be unknown.
	AssurancePod Assurance = "pod"
	// AssuranceProcess means that the kernel named the caller's process and that
	// the process was held open while its user and image were read.
	AssuranceProcess Assurance = "process"
	// AssuranceSID means that the account is known and the process is not.
	AssuranceSID Assurance = "sid"
	// AssuranceNone means that nothing is known about the caller.
	AssuranceNone Assurance = "none"
	// AssuranceDeclared means that admission read a pod and proved nothing. No caller of a pipe has it.
	AssuranceDeclared Assurance = "declared"
)

// Steps of Assurance.Level.
const (
	LevelNone = iota
	LevelSID
	LevelProcess
	LevelPod
)

// Level orders assurances by what they prove. An unknown assurance proves nothing.
func (a Assurance) Level() int {
	switch a {
	case AssurancePod:
		return LevelPod
	case AssuranceProcess:
		return LevelProcess
	case AssuranceSID:
		return LevelSID
	}
	return LevelNone
}
