package peer

import (
	"context"
	"time"

	"github.com/pipeguard/pipeguard/internal/core/caller"
)

// Candidate is a container that a process may turn out to be in.
type Candidate struct {
	// Container has no HostProcess yet: the job that holds the process says that.
	Container caller.Container
	// Pod has no ServiceAccount yet.
	Pod caller.Pod
	// Fault is why no process may be taken for this container. A process that is in it is refused, since it is neither
	// that container nor a process of the host.
	Fault string
}

// MaxCandidates bounds List.Candidates: several times what a kubelet runs. Each is a question or two to the kernel, for each
// connection.
const MaxCandidates = 4096

// List is one answer of the container runtime.
type List struct {
	// Candidates are at most MaxCandidates, each id once.
	Candidates []Candidate
	// AsOf is when the runtime was asked; zero if it has not answered yet. A process that started later may be in a container
	// that the list does not have.
	AsOf time.Time
	// Gap is why a process in none of Candidates may be in a container all the same; empty if the list has every container.
	Gap string
}

// Containers knows the containers of this machine.
type Containers interface {
	// Known returns the last good answer without asking; the zero List if there was none. Neither side changes it.
	Known() List
	// Refresh returns an answer that the runtime began after the call, and ends with ctx at the latest.
	Refresh(ctx context.Context) (List, error)
}

// Accounts knows the service accounts of this machine's pods.
type Accounts interface {
	// ServiceAccount returns "" if it does not know that very pod, and ends with ctx at the latest.
	ServiceAccount(ctx context.Context, pod caller.Pod) (string, error)
}

// Options say how far callers are identified.
type Options struct {
	// Containers leads from a process to its container and pod. Nil ends at the process.
	Containers Containers
	// Accounts leads from a pod to its service account. Nil leaves it unknown.
	Accounts Accounts
	// Timeout is how long both may take together for one caller, 3 s if not set. It has to be shorter than what a connection
	// is given to be named in: out of time the caller is named less well, out of that it is refused.
	Timeout time.Duration
}

const defaultTimeout = 3 * time.Second

// NewResolver names callers by their processes: those of named pipes on Windows and of unix sockets on Linux.
func NewResolver() Resolver { return newResolver(nil) }

// New names callers by their processes and, as far as the options go, by their containers and pods.
func New(o Options) Resolver {
	if o.Containers == nil {
		return NewResolver()
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	return newResolver(&placer{containers: o.Containers, accounts: o.Accounts, timeout: o.Timeout})
}
