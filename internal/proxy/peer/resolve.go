package peer

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/pipeguard/pipeguard/internal/core/caller"
)

// kernel is what is asked of the operating system about a connection. It is cut so thin that every refusal
// below can be tried on any machine.
type kernel interface {
	// ClientPID is the process that opened the connection, as the kernel recorded it then.
	ClientPID(net.Conn) (uint32, error)
	// Open takes hold of a process. From then on the process can be asked about without a PID.
	Open(conn net.Conn, pid uint32) (process, error)
	// Jobs are what the system groups the processes of a container by.
	Jobs(container string) []job
}

// process is one that is held: if it ends, it is known to have ended, and nothing else is mistaken for it.
type process interface {
	PID() (uint32, error)
	Started() (time.Time, error)
	// Alive returns nil while the process runs.
	Alive() error
	User() (caller.User, error)
	Image() (string, error)
	// InJob says whether the process belongs to a job of that name. There may be no such job. True with an error means that it
	// belongs to one that others than the system have made.
	InJob(name string) (bool, error)
	Close() error
}

// resolver follows one order on every system.
type resolver struct {
	kernel kernel
	// system are processes that the kernel keeps for itself. They open no pipe: to be told one of
	// them is to be told nothing about the caller.
	system []uint32
	// placer finds the container of a process; nil leaves it at the process.
	placer *placer
}

// Resolve names the caller. A process that was created after the accept cannot have opened the connection.
//
// The PID by itself proves nothing: its process may have ended, and another may have been given the number.
// So the process is held first, and then proven to be the one that the number meant at the accept.
func (r resolver) Resolve(conn net.Conn, at Arrival) (Peer, error) {
	if at.Time.IsZero() {
		return nil, errors.New("the time of the accept was not noted")
	}
	pid, err := r.clientPID(conn)
	if err != nil {
		return nil, err
	}
	if at.PID != 0 && pid != at.PID {
		return nil, fmt.Errorf("the caller's process id was %d at the accept and is now %d", at.PID, pid)
	}
	proc, err := r.kernel.Open(conn, pid)
	if err != nil {
		return nil, fmt.Errorf("open process %d: %w", pid, err)
	}
	identity, err := r.identify(conn, proc, pid, at.Time)
	if err != nil {
		return nil, errors.Join(err, proc.Close())
	}
	if r.placer != nil {
		if err := r.placer.place(r.kernel, proc, &identity); err != nil {
			return nil, errors.Join(fmt.Errorf("process %d: %w", pid, err), proc.Close())
		}
	}
	return &held{identity: identity, process: proc}, nil
}

func (r resolver) clientPID(conn net.Conn) (uint32, error) {
	pid, err := r.kernel.ClientPID(conn)
	if err != nil {
		return 0, fmt.Errorf("ask for the caller's process id: %w", err)
	}
	if pid == 0 {
		return 0, errors.New("the caller's process id is 0: it is not a process that can be seen from here")
	}
	if slices.Contains(r.system, pid) {
		return 0, fmt.Errorf("the caller's process id is %d, which is the kernel's own", pid)
	}
	return pid, nil
}

func (r resolver) identify(conn net.Conn, proc process, pid uint32, accepted time.Time) (caller.Caller, error) {
	if opened, err := proc.PID(); err != nil {
		return caller.Caller{}, fmt.Errorf("ask process %d for its id: %w", pid, err)
	} else if opened != pid {
		return caller.Caller{}, fmt.Errorf("opened process %d and got process %d", pid, opened)
	}
	started, err := proc.Started()
	if err != nil {
		return caller.Caller{}, fmt.Errorf("ask when process %d started: %w", pid, err)
	}
	if started.After(accepted) {
		return caller.Caller{}, fmt.Errorf("process %d started at %s, after its connection was accepted: the id was given away again",
			pid, started.UTC().Format(time.RFC3339Nano))
	}
	if err := proc.Alive(); err != nil {
		return caller.Caller{}, fmt.Errorf("process %d: %w", pid, err)
	}
	if again, err := r.clientPID(conn); err != nil {
		return caller.Caller{}, fmt.Errorf("second question: %w", err)
	} else if again != pid {
		return caller.Caller{}, fmt.Errorf("the caller's process id was %d and is now %d", pid, again)
	}
	user, image, err := describe(proc)
	if err != nil {
		return caller.Caller{}, fmt.Errorf("process %d: %w", pid, err)
	}
	return caller.Caller{
		Assurance: caller.AssuranceProcess,
		Process:   caller.Process{PID: pid, Start: started, Exe: image},
		User:      user,
	}, nil
}

// describe reads what rules are written about. The process must outlive the reading: where the answers are found
// by number, they are its own only if the number was its own until the end.
func describe(proc process) (caller.User, string, error) {
	user, err := proc.User()
	if err != nil {
		return caller.User{}, "", fmt.Errorf("read its user: %w", err)
	}
	if user.SID == "" {
		return caller.User{}, "", errors.New("its user has no identifier")
	}
	image, err := proc.Image()
	if err != nil {
		return caller.User{}, "", fmt.Errorf("read the path of its image: %w", err)
	}
	if image == "" {
		return caller.User{}, "", errors.New("its image has no path")
	}
	return user, image, proc.Alive()
}
