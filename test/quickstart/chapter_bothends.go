package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	disk "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"sigs.k8s.io/yaml"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
)

// policyFile is the one PipePolicy that decides at both ends.
const policyFile = "pipepolicy.yaml"

// pair is a webhook and a proxy that decide by one PipePolicy.
type pair struct {
	policy   v1alpha1.PipePolicy
	webhook  *webhook
	proxy    *proxy
	bundle   string // file
	revision string // by which admission calls the policies
	number   uint64 // of the bundle
}

// bothEnds tells how one PipePolicy refuses a pod at admission and a call on the node.
func bothEnds(ctx context.Context, s *story, st *stage) {
	s.chapter("One policy, both ends")
	b := &st.both
	steps := []struct {
		title, announcement string
		act                 func() error
	}{
		{"A pod is refused by it",
			`In a cluster this file is applied, and every webhook and node follows it. Here there is none, so another webhook reads
			it among its parameters, which stands before its name. The pod "web" is none of its subjects. The answer ends with the
			revision of the policies that decided.`,
			func() error { return b.refusePod(ctx, s, st) }},
		{"The same file becomes a bundle for nodes",
			`Signed, so that a node believes no ConfigMap but the key that it was given. In a cluster the webhook's leader does this. The
			bundle carries the revision by which admission calls the policy.`,
			func() error { return b.build(ctx, s, st) }},
		{"A node takes it",
			`Another proxy, which verifies the bundle, tries it and decides by it. The status that it answers names both revisions.`,
			func() error { return b.takeUp(ctx, s, st) }},
		{"A call is refused by it",
			`This program calls. It runs in no pod that the policy names, and the refusal names the same policy and the same revision. A
			rule of the node's own for this very program does not help: on pipes that a PipePolicy guards, it decides alone.`,
			func() error { return b.refuseCall(ctx, s) }},
		{"Whom it allows",
			`That takes a pod, and so a container runtime and root: the whole-cluster tests ("make e2e") make these calls from pods. Here
			the bundle that the node has taken is asked what it says of callers if the kernel and the runtime prove that they are these.`,
			func() error { return b.ask(ctx, s) }},
		{"Both ends have recorded it",
			`A line of each file of records, shortened: who was refused, and by which revision.`,
			func() error { return b.compare(s) }},
	}
	for _, step := range steps {
		if !s.step(step.title, step.announcement, step.act) {
			return // each goes on from the one before
		}
	}
}

// refusePod starts a webhook with the policy, and asks it about a pod that it refuses and one that it admits.
func (b *pair) refusePod(ctx context.Context, s *story, st *stage) (err error) {
	text, err := testdata.ReadFile("testdata/" + policyFile)
	if err != nil {
		return err
	}
	s.show(string(text))
	if err := yaml.UnmarshalStrict(text, &b.policy); err != nil {
		return err
	}
	var parameters map[string]any
	if err := yaml.UnmarshalStrict([]byte(st.params), &parameters); err != nil {
		return err
	}
	parameters["pipePolicies"] = map[string]any{b.policy.Name: b.policy.Spec} // in the place of those that are there
	params, err := json.Marshal(parameters)
	if err != nil {
		return err
	}
	if b.webhook, err = startWebhook(st.dir, "webhook-2", st.programs.webhook, params); err != nil {
		return err
	}
	if err := b.webhook.Await(ctx, readyLimit, b.webhook.isReady); err != nil {
		return err
	}
	s.show("\n$ kubectl apply -f web-with-pipe.yaml")
	denial, err := b.webhook.api.create(ctx, "web-with-pipe.yaml")
	if err != nil {
		return err
	}
	s.show(kubectl("", denial))
	e, err := lastRecord(b.webhook.records)
	if err != nil {
		return err
	}
	b.revision = e.Decision.Policy.Revision
	if err := refused(denial, "PG010", "governed by PipePolicy", "/"+b.policy.Name, "policy "+short(b.revision)); err != nil {
		return err
	}
	s.show("\n$ kubectl apply -f driver.yaml")
	r, err := b.webhook.api.create(ctx, "driver.yaml")
	if err != nil {
		return err
	}
	s.show(kubectl("", r))
	return admitted(r, 0)
}

// build makes a key and signs the policy with it.
func (b *pair) build(ctx context.Context, s *story, st *stage) error {
	policy := filepath.Join(st.dir, policyFile)
	text, err := testdata.ReadFile("testdata/" + policyFile)
	if err == nil {
		err = os.WriteFile(policy, text, 0o600)
	}
	if err != nil {
		return err
	}
	key := filepath.Join(st.dir, "bundle.key")
	b.bundle = filepath.Join(st.dir, "bundle.tar.gz")
	for _, c := range []struct {
		shown string
		args  []string
	}{
		{"keys generate bundle.key --for bundle", []string{"keys", "generate", key, "--for", "bundle"}},
		{"bundle build --key bundle.key --pool default --policies " + policyFile + " --policy-revision " + short(b.revision) + "… --out bundle.tar.gz",
			[]string{"bundle", "build", "--key", key, "--pool", "default", "--policies", policy, "--policy-revision", b.revision, "--out", b.bundle}},
		{"bundle verify bundle.tar.gz --keys bundle.key.pub --pool default",
			[]string{"bundle", "verify", b.bundle, "--keys", key + ".pub", "--pool", "default"}},
	} {
		out, errOut, code, err := output(ctx, st.programs.pipeguard, c.args...)
		s.show("$ pipeguard " + c.shown + "\n" + strings.ReplaceAll(out+errOut, st.dir+string(os.PathSeparator), ""))
		if err == nil && code != 0 {
			err = fmt.Errorf("exit code %d", code)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// takeUp starts a proxy with the bundle and waits until it decides by it.
func (b *pair) takeUp(ctx context.Context, s *story, st *stage) (err error) {
	me, err := thisCaller()
	if err != nil {
		return err
	}
	config := strings.ReplaceAll(strings.ReplaceAll(bundleConfig, "CALLER", me), "DIR", st.dir)
	s.show(config)
	if b.proxy, err = startProxy(st.dir, "proxy-2", st.programs.proxy, config); err != nil {
		return err
	}
	var state struct {
		Bundle struct {
			Revision       uint64
			PolicyRevision string
			Invalid        string
		}
	}
	var url string
	var text []byte
	if err := b.proxy.Await(ctx, readyLimit, func(ctx context.Context) error {
		if err := b.proxy.isReady(ctx); err != nil {
			return err
		}
		if url, text, err = b.proxy.status(ctx); err != nil {
			return err
		}
		if err := json.Unmarshal(text, &state); err != nil {
			return err
		}
		if state.Bundle.Revision == 0 || state.Bundle.Invalid != "" {
			return fmt.Errorf("no bundle: %s", text)
		}
		return nil
	}); err != nil {
		return err
	}
	s.show("\n$ curl " + url + "\n" + wrap(strings.ReplaceAll(string(text), ",", ", "), 110, "  "))
	if b.number = state.Bundle.Revision; state.Bundle.PolicyRevision != b.revision {
		return fmt.Errorf("the node decides by policy %s, admission by %s", state.Bundle.PolicyRevision, b.revision)
	}
	return nil
}

const bundleConfig = `apiVersion: pipeguard.dev/v1alpha1
kind: ProxyConfig
bundle:
  pool: default
  keys: DIR/bundle.key.pub
  file: DIR/bundle.tar.gz
  dir: DIR/bundles
acl:
  rules:
    - {name: my-disks, pipes: ["disk-*"], operations: ["*"], callers: [CALLER]}
`

// refuseCall calls the pipe that the pod was refused.
func (b *pair) refuseCall(ctx context.Context, s *story) error {
	return node{socketDir: b.proxy.socketDir}.onPipe("csi-proxy-disk-v1", func(conn *grpc.ClientConn) error {
		r, err := disk.NewDiskClient(conn).ListDiskIDs(ctx, &disk.ListDiskIDsRequest{})
		s.show(answer("v1 ListDiskIDs", r, err))
		return failedWith(err, codes.PermissionDenied, "PipePolicy "+b.policy.Name, "policy "+short(b.revision), fmt.Sprintf("revision %d", b.number), "ListDiskIDs")
	})
}

// compare shows that the records of both ends name one revision.
func (b *pair) compare(s *story) error {
	for _, end := range []struct{ name, file string }{{"admission", b.webhook.records}, {"node", b.proxy.records}} {
		e, err := lastDenial(end.file)
		if err != nil {
			return err
		}
		caller := "pid " + fmt.Sprint(os.Getpid())
		if e.Who.Pod != nil {
			caller = "pod " + e.Who.Pod.Namespace + "/" + e.Who.Pod.Name
		}
		policy, err := json.Marshal(e.Decision.Policy)
		if err != nil {
			return err
		}
		s.show(fmt.Sprintf("%-9s  %s  %s  %s", end.name, e.Decision.Effect, caller, policy))
		if e.Decision.Policy.Revision != b.revision {
			return fmt.Errorf("the record of %s names %s, admission said %s", end.name, e.Decision.Policy.Revision, b.revision)
		}
	}
	return nil
}

// short is the part of a revision that messages show.
func short(revision string) string { return revision[:min(len(revision), len("sha256:")+12)] }
