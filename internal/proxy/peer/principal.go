package peer

import "fmt"

// Principal is one line for the caller, the same for all connections of the same one:
//
//	pod:NAMESPACE/POD/CONTAINER   a container of a pod
//	host:SID:IMAGE                a process that is in no container
//	process:SID:IMAGE             a process of which that was not asked or not answered
//
// It is empty if nothing was proven. The last of its parts is a path and may hold any character.
func (i Identity) Principal() string {
	switch {
	case i.Assurance == AssurancePod && i.Pod != nil && i.Container != nil:
		return fmt.Sprintf("pod:%s/%s/%s", i.Pod.Namespace, i.Pod.Name, i.Container.Name)
	case i.Assurance == AssuranceProcess && i.IsHost:
		return fmt.Sprintf("host:%s:%s", i.User.SID, i.Process.Exe)
	case i.Assurance == AssuranceProcess:
		return fmt.Sprintf("process:%s:%s", i.User.SID, i.Process.Exe)
	}
	return ""
}
