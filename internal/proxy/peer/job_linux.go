package peer

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// Jobs are the control group of a container, which runtimes name for its id.
func (linuxKernel) Jobs(container string) []job { return []job{{name: container}} }

// InJob says whether the process is in the control group of a container (cgroups(7)). A process in groups of several
// containers, which differ by controller, is in each of them. The groups are read once: they are of one moment, and
// a caller is placed once.
func (p *linuxProcess) InJob(container string) (bool, error) {
	if p.containers == nil {
		content, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", p.pid))
		if err != nil {
			return false, err
		}
		p.containers = containersOf(string(content))
	}
	return slices.Contains(p.containers, container), nil
}

// containersOf is not nil.
func containersOf(groups string) []string {
	found := []string{}
	for line := range strings.Lines(groups) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) != 3 {
			continue
		}
		if id := outermost(parts[2]); id != "" && !slices.Contains(found, id) {
			found = append(found, id)
		}
	}
	return found
}

// outermost is the first container id in the path of a control group. What comes after it may have been made inside
// that container, and be named for another.
func outermost(path string) string {
	for segment := range strings.SplitSeq(path, "/") {
		id := strings.TrimSuffix(segment, ".scope") // cri-containerd-ID.scope; SLICE:cri-containerd:ID
		if id = id[strings.LastIndexAny(id, "-:")+1:]; isContainerID(id) {
			return id
		}
	}
	return ""
}

func isContainerID(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}
