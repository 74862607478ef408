package peer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pipeguard/pipeguard/internal/core/caller"
)

// ContainerAccounts begin the SIDs of ContainerAdministrator and ContainerUser, as which nothing runs outside of a
// process-isolated container.
const ContainerAccounts = "S-1-5-93-2-"

// job is a group of processes of one container, by the name that the kernel knows it by.
type job struct {
	name          string
	isHostProcess bool
}

// placer finds the container that a held process is in.
type placer struct {
	containers Containers
	accounts   Accounts // may be nil
	timeout    time.Duration
}

// place completes an identity that was proven as far as the process. Only the kernel says which container that is, and
// only of the process that is held: the runtime contributes names of jobs to ask for. If the runtime cannot be asked,
// the identity stays what it is; a caller about whom the answers contradict each other is refused.
func (p *placer) place(k kernel, proc process, who *caller.Caller) error {
	if isVirtualMachine(who.Process.Exe) {
		return fmt.Errorf("it is %s, behind which are all processes of a virtual machine", who.Process.Exe)
	}
	ctx, cancel := context.WithTimeout(context.Background(), p.timeout)
	defer cancel()
	known := p.containers.Known()
	found, doubt, err := find(k, proc, known)
	if err != nil {
		return err
	}
	// A list may have been made before the container, while it was being made, or before another one took its names.
	isOlder := !known.AsOf.After(who.Process.Start)
	if found == nil || check(found) != nil || isOlder {
		switch fresh, err := p.refresh(ctx); {
		case err != nil && found != nil && !isOlder:
			return check(found)
		case err != nil:
			who.Doubt = "whether it is in a container: " + err.Error()
			return proc.Alive()
		default:
			if found, doubt, err = find(k, proc, fresh); err != nil {
				return err
			}
		}
	}
	switch {
	case found != nil:
		if err := check(found); err != nil {
			return err
		}
		p.settle(ctx, who, found)
	case strings.HasPrefix(who.User.SID, ContainerAccounts):
		return errors.New("it runs as an account of containers, in none that the runtime knows")
	case strings.HasPrefix(who.Process.Exe, `\Device\`):
		return fmt.Errorf("its program %s is on a volume that has no name here, as a container's has, and no container that the runtime knows holds it", who.Process.Exe)
	case doubt != "":
		who.Doubt = "whether it is in a container: " + doubt
	default:
		who.IsHost = true
	}
	return proc.Alive() // where membership is read by number, it was the process's own only if the number still is
}

func (p *placer) refresh(ctx context.Context) (List, error) {
	// What is left of the time is for the service account.
	ctx, cancel := context.WithTimeout(ctx, p.timeout*2/3)
	defer cancel()
	return p.containers.Refresh(ctx)
}

func (p *placer) settle(ctx context.Context, who *caller.Caller, c *Candidate) {
	who.Assurance, who.Container, who.Pod = caller.AssurancePod, c.Container, c.Pod
	if p.accounts == nil {
		return
	}
	account, err := p.accounts.ServiceAccount(ctx, c.Pod)
	switch {
	case err != nil:
		who.Doubt = "the pod's service account: " + err.Error()
	case account == "":
		who.Doubt = "the pod's service account: it is not known"
	default:
		who.Pod.ServiceAccount = account
	}
}

// find returns the one candidate that the process is in, or nil. All are asked about, since a process that is in two
// is in neither for our purposes. A candidate that cannot be asked about, as a job that others have made or changed, casts doubt on
// callers that are found in no other, and has no say about those that are.
func find(k kernel, proc process, list List) (found *Candidate, doubt string, err error) {
	if n := len(list.Candidates); n > MaxCandidates {
		return nil, "", fmt.Errorf("%d containers to ask about; %d are the bound", n, MaxCandidates)
	}
	doubt = list.Gap
	for i := range list.Candidates {
		for _, j := range k.Jobs(list.Candidates[i].Container.ID) {
			in, err := proc.InJob(j.name)
			switch {
			case in && err != nil:
				return nil, "", fmt.Errorf("it is in job %s, which proves nothing: %w", j.name, err)
			case err != nil:
				if doubt == "" {
					doubt = fmt.Sprintf("job %s cannot be asked about: %v", j.name, err)
				}
			case in && found != nil:
				return nil, "", fmt.Errorf("it is in job %s, and in a job of container %s as well", j.name, found.Container.ID)
			case in:
				c := list.Candidates[i]
				c.Container.HostProcess = j.isHostProcess
				found = &c
			}
		}
	}
	return found, doubt, nil
}

// check returns why no process may be taken for the container.
func check(c *Candidate) error {
	switch {
	case c.Fault != "":
		return fmt.Errorf("it is in container %s: %s", c.Container.ID, c.Fault)
	case c.Pod.UID == "" || c.Pod.Namespace == "" || c.Pod.Name == "":
		return fmt.Errorf("it is in container %s, of which no pod is known", c.Container.ID)
	}
	return nil
}

// isVirtualMachine says whether an image is one of the programs that stand, on the host, for a virtual machine: what
// calls is then one of all the processes inside. Someone else's program of that name is refused as well.
func isVirtualMachine(exe string) bool {
	name := strings.ToLower(exe[strings.LastIndexAny(exe, `\/`)+1:])
	return name == "vmwp.exe" || name == "vmmem" || strings.HasPrefix(name, "vmmem.") || strings.HasPrefix(name, "vmmemwsl")
}
