package proxy

import (
	"context"
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	v1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
	"github.com/pipeguard/pipeguard/internal/proxy/token"
)

// fakeRoles let one service account use one method of a pipe.
type fakeRoles struct {
	account, pipe, method string
	err                   error
	asked                 int
	strangers             int // of those that were asked about
}

func (*fakeRoles) Resolved(f token.Facts) token.Identity {
	return token.Identity{Namespace: f.Pod.Namespace, ServiceAccount: f.Pod.ServiceAccount, PodUID: f.Pod.UID}
}

func (r *fakeRoles) Authorize(_ context.Context, id token.Identity, pipe, method string, f token.Facts) (token.Access, error) {
	r.asked++
	if f.Stranger {
		r.strangers++
	}
	switch {
	case r.err != nil:
		return token.Access{}, r.err
	case id.Namespace+"/"+id.ServiceAccount != r.account || pipe != r.pipe || method != r.method:
		return token.Access{}, &token.Refusal{Reason: token.Forbidden}
	}
	return token.Access{Verb: method}, nil
}

func TestRolesAllowWhatTheNodesOwnListLeavesOut(t *testing.T) {
	pod := driver
	pod.Assurance, pod.User.SID, pod.Process.Exe = caller.AssurancePod, "S-1-5-93-2-1", `C:\app.exe`
	pod.Pod = caller.Pod{Namespace: "kube-system", Name: "p", UID: "u", ServiceAccount: "driver"}
	pod.Container = caller.Container{ID: "c", Name: "app"}
	unnamed := driver
	unnamed.Process.Exe = `C:\app.exe`
	for name, c := range map[string]struct {
		caller  caller.Caller
		roles   fakeRoles
		without bool // the pipe asks no roles
		cluster bool // the cluster's policies decide
		allowed bool
		asked   int
		want    string // in the reason
	}{
		"a role":                         {pod, fakeRoles{account: "kube-system/driver", pipe: "filesystem-v1", method: "Rmdir"}, false, false, true, 1, "kube-system/driver"},
		"a role for another method":      {pod, fakeRoles{account: "kube-system/driver", pipe: "filesystem-v1", method: "Mkdir"}, false, false, false, 1, "forbidden"},
		"a role for another pipe":        {pod, fakeRoles{account: "kube-system/driver", pipe: "filesystem-v2alpha1", method: "Rmdir"}, false, false, false, 1, "forbidden"},
		"another account's":              {pod, fakeRoles{account: "kube-system/other", pipe: "filesystem-v1", method: "Rmdir"}, false, false, false, 1, "forbidden"},
		"nobody answers":                 {pod, fakeRoles{err: errors.New("x")}, false, false, false, 1, "they cannot be asked"},
		"the pipe asks none":             {pod, fakeRoles{account: "kube-system/driver", pipe: "filesystem-v1", method: "Rmdir"}, true, false, false, 0, ""},
		"the cluster's policies decide":  {pod, fakeRoles{account: "kube-system/driver", pipe: "filesystem-v1", method: "Rmdir"}, false, true, false, 0, ""},
		"a process that is in no pod":    {driver, fakeRoles{account: "kube-system/driver", pipe: "filesystem-v1", method: "Rmdir"}, false, false, false, 1, "forbidden"},
		"a process that nobody names":    {unnamed, fakeRoles{account: "kube-system/driver", pipe: "filesystem-v1", method: "Rmdir"}, false, false, false, 1, "forbidden"},
		"an account that is not spelled": {driver, fakeRoles{account: "x", pipe: "filesystem-v1", method: "Rmdir"}, false, false, false, 1, "forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := acl.New(allowDriver)
			if err != nil {
				t.Fatal(err)
			}
			rules := Listed(list)
			rules.HasRoles = !c.cluster
			f := start(t, "memory", func(o *Options) {
				o.Rules = func(string, string) *Rules { return rules }
				o.Roles = func(pipe string) Roles {
					if c.without || pipe != "csi-proxy-filesystem-v1" {
						return nil
					}
					return &c.roles
				}
			})
			f.peers.set(func(p *fakePeers) { p.identity = c.caller })
			_, err = v1.NewFilesystemClient(f.client(t, "filesystem-v1")).Rmdir(within(t), &v1.RmdirRequest{Path: `C:\a`})
			want := codes.PermissionDenied
			if c.allowed {
				want = codes.OK
			}
			if status.Code(err) != want || f.ran.Load() == 1 != c.allowed || c.roles.asked != c.asked {
				t.Fatalf("%v; ran %d, asked %d", err, f.ran.Load(), c.roles.asked)
			}
			if isStranger := c.caller.Process.Exe == unnamed.Process.Exe && !c.caller.HasPod(); (c.roles.strangers > 0) != isStranger {
				t.Errorf("asked about %d strangers", c.roles.strangers)
			}
			d := f.log.await(t, 1, terminal)[0].Decision
			if (d.Effect == audit.EffectAllow) != c.allowed || !strings.Contains(d.Reason, c.want) || (d.Policy.Name == "roles") != c.allowed {
				t.Errorf("record %+v by %+v", d, d.Policy)
			}
			if c.allowed && d.Rule != "roles/Rmdir" {
				t.Errorf("rule %q", d.Rule)
			}
		})
	}
}

func TestRolesAreNotAskedAboutWhatIsAllowed(t *testing.T) {
	roles := &fakeRoles{err: errors.New("x")}
	list, err := acl.New(allowDriver)
	if err != nil {
		t.Fatal(err)
	}
	rules := Listed(list)
	rules.HasRoles = true
	f := start(t, "memory", func(o *Options) {
		o.Rules, o.Roles = func(string, string) *Rules { return rules }, func(string) Roles { return roles }
	})
	if err := mkdirs["v1"](within(t), f.client(t, "filesystem-v1")); err != nil || roles.asked != 0 {
		t.Errorf("%v, asked %d times", err, roles.asked)
	}
}
