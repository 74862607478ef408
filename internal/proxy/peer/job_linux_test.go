package peer

import (
	"os"
	"slices"
	"strings"
	"testing"
)

func TestInGroupIsNotLedAstrayByNames(t *testing.T) {
	const other = "b"
	tests := []struct {
		name, groups string
		want         bool
	}{
		{"the unified hierarchy", "0::/kubepods/besteffort/pod7/" + id("a") + "\n", true},
		{"systemd's scope", "0::/kubepods.slice/kubepods-pod7.slice/cri-containerd-" + id("a") + ".scope\n", true},
		{"systemd's name in a plain hierarchy", "4:memory:/kubepods-pod7.slice:cri-containerd:" + id("a") + "\n", true},
		{"a group made inside", "0::/kubepods/pod7/" + id("a") + "/inner\n", true},
		{"one of several controllers", "5:cpu:/\n4:memory:/kubepods/" + id("a") + "\n", true},
		{"a proxy in a group of its own", "0::/../../pod7/" + id("a") + "\n", true},
		{"another container", "0::/kubepods/pod7/" + id(other) + "\n", false},
		{"a group made inside another container and named for this one", "0::/kubepods/pod7/" + id(other) + "/" + id("a") + "\n", false},
		{"a scope made inside another container", "0::/pod7/" + id(other) + "/cri-containerd-" + id("a") + ".scope\n", false},
		{"an id that begins alike", "0::/kubepods/pod7/" + id("a") + "a\n", false},
		{"an id that ends alike", "0::/kubepods/pod7/c" + id("a") + "\n", false},
		{"an id in capital letters", "0::/kubepods/pod7/" + strings.ToUpper(id("a")) + "\n", false},
		{"a pod named for the container", "0::/kubepods/pod" + id("a") + "/x\n", false},
		{"an id among the controllers", "0:" + id("a") + ":/\n", false},
		{"no container", "0::/system.slice/sshd.service\n", false},
		{"a line cut short", "0:/" + id("a") + "\n", false},
		{"nothing", "", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := slices.Contains(containersOf(test.groups), id("a")); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
	if got := containersOf("5:cpu:/" + id("a") + "\n4:memory:/" + id("b") + "\n3:pids:/" + id("a") + "\n"); !slices.Equal(got, []string{id("a"), id("b")}) {
		t.Errorf("groups of two containers: %v", got)
	}
}

func TestInJobOfARealProcess(t *testing.T) {
	p := &linuxProcess{pid: uint32(os.Getpid())}
	if in, err := p.InJob(id("a")); err != nil || in {
		t.Errorf("in a container that is not there: %t, %v", in, err)
	}
	gone := &linuxProcess{pid: 1<<31 - 1}
	if in, err := gone.InJob(id("a")); err == nil || in {
		t.Errorf("a process that is not there: %t, %v", in, err)
	}
}

func FuzzContainersOf(f *testing.F) {
	f.Add("0::/kubepods/pod7/" + id("a") + "\n")
	f.Add("4:memory:/kubepods-pod7.slice:cri-containerd:" + id("b") + "\n")
	f.Fuzz(func(t *testing.T, groups string) {
		found := containersOf(groups)
		if len(found) > strings.Count(groups, "\n")+1 {
			t.Errorf("%q is in %v", groups, found)
		}
		for _, id := range found {
			if !isContainerID(id) || !strings.Contains(groups, id) {
				t.Errorf("%q is in %q", groups, id)
			}
		}
	})
}
