//go:build e2e

package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// covered are directories of the machine that the programs write to. In the run's own mount namespace each shows a
// directory of the run, so that the machine's stay as they are.
var covered = []string{"/run", "/var/log", "/var/lib"}

const (
	nodeIP     = "10.243.0.1"
	podNet     = "10.244.0.0/24"
	serviceNet = "10.96.0.0/16"
	apiIP      = "10.96.0.1" // the first of serviceNet is the API server's
)

// furnish prepares the namespaces that this process is in: mounts and the network.
func furnish(dir string) error {
	// First private, or what is mounted here shows outside; then shared, because the kubelet hands mounts on to containers.
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	for _, path := range covered {
		own := filepath.Join(dir, strings.ReplaceAll(path[1:], "/", "-"))
		if err := os.Mkdir(own, 0o755); err != nil { // #nosec G301 -- containers run as other users
			return err
		}
		if err := syscall.Mount(own, path, "", syscall.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount %s: %w", path, err)
		}
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_SHARED, ""); err != nil {
		return fmt.Errorf("make mounts shared: %w", err)
	}
	if err := syscall.Sethostname([]byte(NodeName)); err != nil {
		return fmt.Errorf("set the name of the node: %w", err)
	}
	for _, line := range []string{
		"link set lo up",
		// The node's address is on a bridge without ports, which every kernel can make.
		"link add node0 type bridge",
		"address add " + nodeIP + "/24 dev node0",
		"link set node0 up",
		// Without a route, connecting to the IP of a Service fails before kube-proxy's rules could change it.
		"route add default dev node0",
	} {
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil { // #nosec G204 -- the lines above
			return fmt.Errorf("ip %s: %w: %s", line, err, out)
		}
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o600); err != nil {
		return fmt.Errorf("forward packets: %w", err)
	}
	return nil
}

// settings are those of the kernel that the kubelet changes and that no namespace holds.
type settings map[string][]byte

func readSettings() settings {
	s := settings{}
	for _, name := range []string{
		"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
		"kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
	} {
		if value, err := os.ReadFile(filepath.Join("/proc/sys", name)); err == nil {
			s[name] = value
		}
	}
	return s
}

func (s settings) restore() error {
	var all error
	for name, value := range s {
		if err := os.WriteFile(filepath.Join("/proc/sys", name), value, 0o600); err != nil {
			all = errors.Join(all, fmt.Errorf("restore %s: %w", name, err))
		}
	}
	return all
}

// hierarchies are the directories where control groups are made: one of version 2, or one for each controller.
func hierarchies() ([]string, error) {
	const root = "/sys/fs/cgroup"
	if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err == nil {
		return []string{root}, nil
	}
	return filepath.Glob(filepath.Join(root, "*"))
}

// makeGroups makes the control group that the kubelet puts everything into.
func makeGroups(name string) error {
	roots, err := hierarchies()
	if err != nil {
		return err
	}
	for _, root := range roots {
		if info, err := os.Lstat(root); err != nil || !info.IsDir() {
			continue // a link to a hierarchy with several controllers
		}
		group := filepath.Join(root, name)
		if err := os.Mkdir(group, 0o755); err != nil { // #nosec G301 -- the mode of all control groups
			return fmt.Errorf("make a control group: %w", err)
		}
		// A new cpuset without processors takes no process.
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			if value, err := os.ReadFile(filepath.Join(root, file)); err == nil && strings.Contains(root, "cpuset") {
				if err := os.WriteFile(filepath.Join(group, file), value, 0o600); err != nil {
					return fmt.Errorf("set %s: %w", file, err)
				}
			}
		}
	}
	return nil
}

// removeGroups removes the run's control groups, from the innermost to the outermost.
func removeGroups(name string) error {
	roots, err := hierarchies()
	if err != nil {
		return err
	}
	for _, root := range roots {
		var groups []string
		_ = filepath.WalkDir(filepath.Join(root, name), func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				groups = append(groups, path)
			}
			return nil // a group that ends meanwhile is what is wanted
		})
		for i := len(groups) - 1; i >= 0; i-- {
			err = errors.Join(err, removeGroup(groups[i]))
		}
	}
	return err
}

// removeGroup removes one. The kernel calls it busy for a moment after its last process was killed.
func removeGroup(path string) (err error) {
	for range 50 {
		if err = syscall.Rmdir(path); err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return fmt.Errorf("remove the control group %s: %w", path, err)
}
