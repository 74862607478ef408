package auditcmd

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/query"
)

// callerCell names who asked, by the most that was proven: the container of a pod, else the account and whether it is one of the
// host. The pod of an admission did not ask, it was asked for.
func callerCell(e audit.Event, isWide bool) string {
	who := e.Who
	if who == nil {
		return ""
	}
	isPod := who.Pod != nil && e.Type != audit.TypeAdmission
	var parts []string
	if isPod {
		parts = append(parts, container(who))
	}
	if who.User != nil && (isWide || !isPod) { // containers share a few accounts
		parts = append(parts, cmp.Or(who.User.Name, who.User.SID))
	}
	if who.Process != nil {
		exe := who.Process.Exe
		if !isWide {
			exe = middle(query.Base(exe))
		}
		parts = append(parts, fmt.Sprintf("%s[%d]", query.Named(exe), who.Process.PID))
	}
	if len(parts) == 0 {
		parts = append(parts, "assurance:"+who.Assurance)
	}
	name := strings.Join(parts, " ")
	if who.Host {
		name = "host:" + name
	}
	return name + remarks(who, isWide)
}

// shortCaller is a caller as query.Caller names it, its program without the middle if that is long. A program stands last, in quotes if it has blanks, and has
// no separator, which the name of a container has.
func shortCaller(name string) string {
	start := strings.LastIndexByte(name, ' ') + 1
	if strings.HasSuffix(name, `"`) {
		start = max(0, strings.LastIndexByte(name[:len(name)-1], '"'))
	}
	program := name[start:]
	if strings.Contains(program, "/") || start == 0 && len(name) <= 2*maxCell { // accounts alone, such as those of controllers, are long
		return name
	}
	return name[:start] + middle(program)
}

// remarks are what else was proven or could not be; wide, doubt has a column of its own.
func remarks(who *audit.Who, isWide bool) (s string) {
	if who.Container != nil && who.Container.HostProcess {
		s += " (HostProcess)"
	}
	if who.Token {
		s += " (token)"
	}
	if who.Doubt != "" && !isWide {
		s += " (doubt)"
	}
	return s
}

func pod(who *audit.Who) string {
	if who == nil || who.Pod == nil {
		return ""
	}
	return who.Pod.Namespace + "/" + who.Pod.Name
}

func container(who *audit.Who) string {
	if who.Container == nil {
		return pod(who)
	}
	return pod(who) + "/" + cmp.Or(who.Container.Name, who.Container.ID)
}

// identity is what the columns of a wide row say of a caller: its service account, its image and what is in doubt.
func identity(who *audit.Who) []string {
	cells := make([]string, 3)
	if who == nil {
		return cells
	}
	if who.Pod != nil {
		cells[0] = who.Pod.ServiceAccount
	}
	if who.Container != nil {
		cells[1] = who.Container.Image
	}
	cells[2] = who.Doubt
	return cells
}
