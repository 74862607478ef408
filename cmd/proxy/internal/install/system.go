package install

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
)

// theirExeName is the name of the program that this one takes the place of.
const theirExeName = "csi-proxy.exe"

// nodeServices are services without which there is no node, by their usual names; programs are named alike. Their commands can be those of
// a wrapper such as nssm.exe, which say nothing.
var nodeServices = []string{"kubelet", "kubeproxy", "kube-proxy", "containerd", "docker", "dockerd", "rke2", "rancher-wins", "wins", "windows-instance-config-daemon"}

// refuseSystem refuses a service of Windows, whose program lies in its directory, or of the node.
func refuseSystem(name, program string) error {
	_, base := splitExe(program)
	base = strings.TrimSuffix(strings.ToLower(base), ".exe")
	if slices.Contains(nodeServices, strings.ToLower(name)) || slices.Contains(nodeServices, base) {
		return fmt.Errorf("service %s is one that the node needs, and is not replaced; nothing was changed", name)
	}
	if isOfWindows(program) {
		return fmt.Errorf("service %s runs %s, which is part of Windows, and is not replaced; nothing was changed", name, cmp.Or(program, "an unknown program"))
	}
	return nil
}

// isOfWindows says whether a program lies in the directory of Windows, in any of the forms that commands of services have. A command
// whose program cannot be told counts as one.
// https://learn.microsoft.com/windows/win32/api/winsvc/ns-winsvc-query_service_configw
func isOfWindows(program string) bool {
	p := strings.ToLower(strings.ReplaceAll(program, "/", `\`))
	p = strings.TrimPrefix(strings.TrimPrefix(p, `\??\`), `\\?\`)
	if p == "" || strings.Contains(p, "..") || !strings.HasSuffix(p, ".exe") {
		return true
	}
	dirs := []string{`c:\windows`, `%systemroot%`, `%windir%`, `\systemroot`, `system32`, `\windows`}
	if root := strings.ToLower(os.Getenv("SystemRoot")); root != "" {
		dirs = append(dirs, root)
	}
	return slices.ContainsFunc(dirs, func(dir string) bool { return strings.HasPrefix(p, dir+`\`) })
}

// programOf returns the program of a service's command: what is quoted, or else everything up to the first .exe that a blank or the end
// follows, because commands that are not quoted may have blanks in the path.
func programOf(command string) string {
	command = strings.TrimSpace(command)
	if rest, ok := strings.CutPrefix(command, `"`); ok {
		program, _, _ := strings.Cut(rest, `"`)
		return program
	}
	lower := strings.ToLower(command)
	for at := 0; ; {
		next := strings.Index(lower[at:], ".exe")
		if next < 0 {
			program, _, _ := strings.Cut(command, " ")
			return program
		}
		if at += next + len(".exe"); at == len(command) || command[at] == ' ' || command[at] == '\t' {
			return command[:at]
		}
	}
}
