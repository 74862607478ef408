package peer

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/internal/core/caller"
)

// fakeContainers is a runtime of which something is known, and something else once it is asked.
type fakeContainers struct {
	known, fresh []Candidate
	asOf         time.Time // of what is known
	gap          string    // of both
	err          error
	stuck        bool // it answers when the time is over
	asked        int
}

func (f *fakeContainers) Known() List {
	return List{Candidates: f.known, AsOf: f.asOf, Gap: f.gap}
}

func (f *fakeContainers) Refresh(ctx context.Context) (List, error) {
	f.asked++
	if f.stuck {
		<-ctx.Done()
		return List{}, ctx.Err()
	}
	return List{Candidates: f.fresh, AsOf: accept, Gap: f.gap}, f.err
}

type fakeAccounts struct {
	account string
	err     error
	stuck   bool
	asked   []caller.Pod
}

func (f *fakeAccounts) ServiceAccount(ctx context.Context, pod caller.Pod) (string, error) {
	f.asked = append(f.asked, pod)
	if f.stuck {
		<-ctx.Done()
		return "", ctx.Err()
	}
	return f.account, f.err
}

// id is a container id of one digit, 64 times.
func id(digit string) string { return strings.Repeat(digit, 64) }

// of is a container of a pod that is named for the digit of its id.
func of(digit string) Candidate {
	return Candidate{
		Container: caller.Container{ID: id(digit), Name: "driver", Image: "registry.example/driver:" + digit},
		Pod:       caller.Pod{Namespace: "storage", Name: "csi-" + digit, UID: "uid-" + digit},
	}
}

func silo(digit string) string      { return `\Container_` + id(digit) }
func hostGroup(digit string) string { return `JobContainer_` + id(digit) }

// site is a caller, and what is around it.
type site struct {
	kernel     *fakeKernel
	containers *fakeContainers
	accounts   *fakeAccounts
}

func newSite() *site {
	both := []Candidate{of("a"), of("b")}
	return &site{kernel: honest(), containers: &fakeContainers{known: both, fresh: both, asOf: accept}, accounts: &fakeAccounts{account: "csi"}}
}

func (s *site) resolve(t *testing.T) (Peer, error) {
	t.Helper()
	return resolver{kernel: s.kernel, placer: &placer{containers: s.containers, accounts: s.accounts, timeout: defaultTimeout}}.Resolve(conn(t), Arrival{Time: accept})
}

func TestPlaceRefusesWhoeverCannotBeToldApart(t *testing.T) {
	faulty := func(digit, fault string) Candidate {
		c := of(digit)
		c.Fault = fault
		return c
	}
	without := func(change func(*caller.Pod)) Candidate {
		c := of("c")
		change(&c.Pod)
		return c
	}
	only := func(c ...Candidate) func(*site) {
		return func(s *site) {
			s.containers.known, s.containers.fresh, s.kernel.process.jobs = c, c, []string{silo("c")}
		}
	}
	tests := []struct {
		name   string
		change func(*site)
		want   string
	}{
		{"a process in two containers", func(s *site) { s.kernel.process.jobs = []string{silo("a"), silo("b")} }, "as well"},
		{"a process in a container of either kind", func(s *site) { s.kernel.process.jobs = []string{silo("a"), hostGroup("b")} }, "as well"},
		{"a process in both jobs of one container", func(s *site) { s.kernel.process.jobs = []string{silo("a"), hostGroup("a")} }, "as well"},
		{"two containers that claim one id", only(of("c"), of("c")), "as well"},
		{"a process in two containers, of which one is new", func(s *site) {
			s.containers.known, s.kernel.process.jobs = nil, []string{silo("a"), silo("b")}
		}, "as well"},
		{"a second container has a fault", func(s *site) {
			s.containers.known = []Candidate{of("a"), faulty("b", "lies")}
			s.kernel.process.jobs = []string{silo("a"), silo("b")}
		}, "as well"},
		{"a job that answers yes and an error", func(s *site) {
			s.kernel.process.jobs = []string{hostGroup("a")}
			s.kernel.process.jobErrs = map[string]error{hostGroup("a"): errors.New("NT AUTHORITY\\LOCAL SERVICE made it")}
		}, "LOCAL SERVICE made it"},
		{"an account of containers in no container, while a job cannot be asked about", func(s *site) {
			s.kernel.process.user, s.kernel.process.jobErrs = caller.User{SID: "S-1-5-93-2-1"}, map[string]error{silo("b"): errAsked}
		}, "in none that the runtime knows"},
		{"a program on a container's volume, while the list has a gap", func(s *site) {
			s.kernel.process.image, s.containers.gap = `\Device\HarddiskVolume9\csi\driver.exe`, "too many"
		}, "volume that has no name"},
		{"a container that has ended", only(faulty("c", "it has ended")), "has ended"},
		{"a container with lying labels", only(faulty("c", "its labels lie")), "labels lie"},
		{"a container with lying labels, and nobody to ask again", func(s *site) {
			only(faulty("c", "its labels lie"))(s)
			s.containers.err = errAsked
		}, "labels lie"},
		{"a pod without a uid", only(without(func(p *caller.Pod) { p.UID = "" })), "no pod is known"},
		{"a pod without a name", only(without(func(p *caller.Pod) { p.Name = "" })), "no pod is known"},
		{"a pod without a namespace", only(without(func(p *caller.Pod) { p.Namespace = "" })), "no pod is known"},
		{"an account of containers in no container", func(s *site) { s.kernel.process.user = caller.User{SID: "S-1-5-93-2-1"} }, "in none that the runtime knows"},
		{"a user of containers in no container", func(s *site) { s.kernel.process.user = caller.User{SID: "S-1-5-93-2-2"} }, "in none that the runtime knows"},
		{"a program on a container's volume in no container", func(s *site) { s.kernel.process.image = `\Device\HarddiskVolume9\csi\driver.exe` }, "volume that has no name"},
		{"a virtual machine's worker", func(s *site) { s.kernel.process.image = `C:\Windows\System32\VMWP.exe` }, "virtual machine"},
		{"a virtual machine's memory", func(s *site) { s.kernel.process.image = `vmmem` }, "virtual machine"},
		{"a virtual machine of a subsystem", func(s *site) { s.kernel.process.image = `C:\Windows\vmmemWSL` }, "virtual machine"},
		{"a virtual machine's worker in a container", func(s *site) {
			s.kernel.process.image, s.kernel.process.jobs = `C:\Windows\System32\vmwp.exe`, []string{silo("a")}
		}, "virtual machine"},
		{"more containers than can be asked about", only(make([]Candidate, MaxCandidates+1)...), "4096 are the bound"},
		{"a process that ends while it is placed", func(s *site) {
			s.kernel.process.jobs, s.kernel.process.alive = []string{silo("a")}, []error{nil, nil, errEnded}
		}, "has ended"},
		{"a host's process that ends while it is placed", func(s *site) { s.kernel.process.alive = []error{nil, nil, errEnded} }, "has ended"},
		{"a process that ends while the runtime is away", func(s *site) {
			s.containers.err, s.kernel.process.alive = errAsked, []error{nil, nil, errEnded}
		}, "has ended"},
		{"a process id that was given away again, in a container", func(s *site) {
			s.kernel.process.jobs, s.kernel.process.started = []string{silo("a")}, accept.Add(1)
		}, "given away again"},
		{"another process than the one that connected, in a container", func(s *site) {
			s.kernel.process.jobs, s.kernel.process.pid = []string{silo("a")}, 4712
		}, "got process 4712"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := newSite()
			test.change(s)
			peer, err := s.resolve(t)
			if err == nil {
				t.Fatalf("resolved %+v", peer.Identity())
			}
			if peer != nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("peer %v, error %q; want it to say %q", peer, err, test.want)
			}
			if s.kernel.process.held != 0 {
				t.Errorf("%d holds are left on a refused process", s.kernel.process.held)
			}
			if s.containers.asked > 1 {
				t.Errorf("the runtime was asked %d times", s.containers.asked)
			}
		})
	}
}

func TestPlaceNamesTheCaller(t *testing.T) {
	inPod := func(digit string, change ...func(*caller.Caller)) func(*caller.Caller) {
		return func(i *caller.Caller) {
			c := of(digit)
			i.Assurance, i.Container, i.Pod = caller.AssurancePod, c.Container, c.Pod
			i.Pod.ServiceAccount = "csi"
			for _, f := range change {
				f(i)
			}
		}
	}
	tests := []struct {
		name   string
		change func(*site)
		want   func(*caller.Caller)
		asked  int // the runtime
	}{
		{"a process in a container", func(s *site) { s.kernel.process.jobs = []string{silo("b")} }, inPod("b"), 0},
		{"a process in a container of the host's own processes", func(s *site) { s.kernel.process.jobs = []string{hostGroup("a")} },
			inPod("a", func(i *caller.Caller) { i.Container.HostProcess = true }), 0},
		{"an account of containers in a container", func(s *site) {
			s.kernel.process.jobs, s.kernel.process.user = []string{silo("a")}, caller.User{SID: "S-1-5-93-2-1"}
		}, inPod("a", func(i *caller.Caller) { i.User = caller.User{SID: "S-1-5-93-2-1"} }), 0},
		{"a container that is newer than what was heard", func(s *site) {
			s.containers.known, s.kernel.process.jobs = []Candidate{of("a")}, []string{silo("b")}
		}, inPod("b"), 1},
		{"a container that was half known", func(s *site) {
			half := of("b")
			half.Pod, half.Fault = caller.Pod{}, "no sandbox"
			s.containers.known, s.kernel.process.jobs = []Candidate{of("a"), half}, []string{silo("b")}
		}, inPod("b"), 1},
		{"a known container while the runtime is away", func(s *site) {
			s.containers.err, s.kernel.process.jobs = errAsked, []string{silo("a")}
		}, inPod("a"), 0},
		{"a process of the host", func(*site) {}, func(i *caller.Caller) { i.IsHost = true }, 1},
		{"a process in a container, while another container's job cannot be asked about", func(s *site) {
			s.kernel.process.jobs = []string{silo("a")}
			s.kernel.process.jobErrs = map[string]error{hostGroup("b"): errAsked}
		}, inPod("a"), 0},
		{"a process in no container, while a job cannot be asked about", func(s *site) {
			s.kernel.process.jobErrs = map[string]error{silo("a"): errAsked}
		}, func(i *caller.Caller) {
			i.Doubt = "whether it is in a container: job " + silo("a") + " cannot be asked about: the kernel does not say"
		}, 1},
		{"a process in a container, while the list has a gap", func(s *site) {
			s.containers.gap, s.kernel.process.jobs = "too many", []string{silo("b")}
		}, inPod("b"), 0},
		{"a process in no container of a list with a gap", func(s *site) { s.containers.gap = "too many" },
			func(i *caller.Caller) { i.Doubt = "whether it is in a container: too many" }, 1},
		{"a process that started after the list was asked for", func(s *site) {
			s.kernel.process.jobs, s.containers.asOf = []string{silo("a")}, s.kernel.process.started
		}, inPod("a"), 1},
		{"a process whose job's name another container had when the list was asked for", func(s *site) {
			s.kernel.process.jobs, s.containers.asOf = []string{silo("a")}, s.kernel.process.started.Add(-time.Minute)
			s.containers.fresh = []Candidate{of("b")}
		}, func(i *caller.Caller) { i.IsHost = true }, 1},
		{"a process that started after the list was asked for, while the runtime is away", func(s *site) {
			s.kernel.process.jobs, s.containers.asOf, s.containers.err = []string{silo("a")}, s.kernel.process.started, errAsked
		}, func(i *caller.Caller) { i.Doubt = "whether it is in a container: the kernel does not say" }, 1},
		{"a process in some other job", func(s *site) { s.kernel.process.jobs = []string{`\Container_` + id("f"), "updater"} },
			func(i *caller.Caller) { i.IsHost = true }, 1},
		{"an unknown process while the runtime is away", func(s *site) { s.containers.err = errAsked },
			func(i *caller.Caller) { i.Doubt = "whether it is in a container: the kernel does not say" }, 1},
		{"a new container's process while the runtime is away", func(s *site) {
			s.containers.known, s.containers.err, s.kernel.process.jobs = []Candidate{of("a")}, errAsked, []string{silo("b")}
		}, func(i *caller.Caller) { i.Doubt = "whether it is in a container: the kernel does not say" }, 1},
		{"an account of containers while the runtime is away", func(s *site) {
			s.containers.err, s.kernel.process.user = errAsked, caller.User{SID: "S-1-5-93-2-1"}
		}, func(i *caller.Caller) {
			i.User, i.Doubt = caller.User{SID: "S-1-5-93-2-1"}, "whether it is in a container: the kernel does not say"
		}, 1},
		{"a pod whose service account cannot be asked for", func(s *site) {
			s.accounts.err, s.accounts.account, s.kernel.process.jobs = errAsked, "ignored", []string{silo("a")}
		}, inPod("a", func(i *caller.Caller) {
			i.Pod.ServiceAccount, i.Doubt = "", "the pod's service account: the kernel does not say"
		}), 0},
		{"a pod whose service account nobody knows", func(s *site) { s.accounts.account, s.kernel.process.jobs = "", []string{silo("a")} },
			inPod("a", func(i *caller.Caller) {
				i.Pod.ServiceAccount, i.Doubt = "", "the pod's service account: it is not known"
			}), 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := newSite()
			test.change(s)
			peer, err := s.resolve(t)
			if err != nil {
				t.Fatal(err)
			}
			want := caller.Caller{
				Assurance: caller.AssuranceProcess,
				Process:   caller.Process{PID: 4711, Start: s.kernel.process.started, Exe: `C:\csi\driver.exe`},
				User:      s.kernel.process.user,
			}
			test.want(&want)
			if diff := cmp.Diff(want, peer.Identity()); diff != "" {
				t.Errorf("identity (-want +got):\n%s", diff)
			}
			if s.containers.asked != test.asked {
				t.Errorf("the runtime was asked %d times, want %d", s.containers.asked, test.asked)
			}
			if !want.HasPod() && s.accounts.asked != nil {
				t.Errorf("a service account was asked for: %v", s.accounts.asked)
			}
		})
	}
}

func TestPlaceEndsInTime(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*site)
		took   time.Duration // whatever the runtime leaves is the kubelet's
	}{
		"the runtime": {func(s *site) { s.containers.stuck = true }, defaultTimeout * 2 / 3},
		"the kubelet": {func(s *site) { s.accounts.stuck, s.kernel.process.jobs = true, []string{silo("a")} }, defaultTimeout},
		"both": {func(s *site) {
			s.containers.stuck, s.accounts.stuck, s.kernel.process.jobs = true, true, []string{silo("a")}
		}, defaultTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite()
				tc.change(s)
				began := time.Now()
				peer, err := s.resolve(t)
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took != tc.took {
					t.Errorf("it took %v, want %v", took, tc.took)
				}
				if peer.Identity().Doubt == "" {
					t.Errorf("no doubt about %+v", peer.Identity())
				}
			})
		})
	}
}

func TestIdentityOutlivesTheContainer(t *testing.T) {
	s := newSite()
	s.kernel.process.jobs = []string{silo("a")}
	peer, err := s.resolve(t)
	if err != nil {
		t.Fatal(err)
	}
	s.containers.known[0], s.containers.known, s.containers.fresh = of("b"), nil, nil
	s.kernel.process.jobs = []string{silo("b")}
	if got := peer.Identity(); got.Container.ID != id("a") || got.Pod.Name != "csi-a" {
		t.Errorf("the caller became %+v of %+v", got.Container, got.Pod)
	}
	if err := peer.Alive(); err != nil {
		t.Error(err)
	}
}

func TestWithoutASourceNothingIsAsked(t *testing.T) {
	kernel := honest()
	kernel.process.image, kernel.process.user = `C:\Windows\System32\vmwp.exe`, caller.User{SID: "S-1-5-93-2-1"}
	kernel.process.jobErrs = map[string]error{silo("a"): errAsked}
	peer, err := resolver{kernel: kernel}.Resolve(conn(t), Arrival{Time: accept})
	if err != nil {
		t.Fatal(err)
	}
	if got := peer.Identity(); got.Assurance != caller.AssuranceProcess || got.IsHost || got.Doubt != "" || got.HasPod() {
		t.Errorf("identity %+v", got)
	}
	if diff := cmp.Diff(NewResolver(), New(Options{Accounts: &fakeAccounts{}}), cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
		t.Errorf("a source of accounts alone makes a difference:\n%s", diff)
	}
}
