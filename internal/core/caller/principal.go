package caller

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Principal is the party that a bound counts: a container of a pod where that is proven, else an account and the program that
// runs as it. Starting more processes gains nothing. The program is part of it because rules for the host name programs: the
// drivers and agents of a node are all SYSTEM, and one of them must not use up what another one needs.
type Principal struct {
	PodUID, Container string // set together, and then the rest is empty
	Namespace         string // of the pod
	User, Exe         string // SID, and full path in one case
}

// Principal is the party that limits are counted for.
func (c Caller) Principal() Principal {
	if c.HasPod() {
		return Principal{PodUID: c.Pod.UID, Container: c.Container.ID, Namespace: c.Pod.Namespace}
	}
	return Principal{User: c.User.SID, Exe: programKey(c.Process.Exe)}
}

// String is a text that no other principal has.
func (p Principal) String() string {
	return p.Namespace + "/" + p.PodUID + "/" + p.Container + "/" + p.User + "/" + p.Exe
}

// programKey stands for the path of a program in one case. It is kept for each caller, so a long one ends in its hash.
func programKey(exe string) string {
	const most = 256 // bytes
	exe = strings.ToLower(exe)
	if len(exe) <= most {
		return exe
	}
	hash := sha256.Sum256([]byte(exe))
	return exe[:most] + hex.EncodeToString(hash[:])
}
