//go:build e2e

package cluster

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"
)

// The cluster has a network of its own, so ports can be fixed.
const (
	etcdURL = "http://127.0.0.1:2379"
	apiURL  = "https://" + nodeIP + ":6443"
)

// startLimit is long, because the machine may be busy. Usually each part takes a few seconds.
const startLimit = 2 * time.Minute

// issueAll makes the certificates and kubeconfigs of all parts.
func (c *Cluster) issueAll() (err error) {
	if c.ca, err = newAuthority(c.path("pki")); err != nil {
		return err
	}
	return errors.Join(
		c.ca.server("apiserver", "kube-apiserver", nil,
			[]string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"}, "127.0.0.1", nodeIP, apiIP),
		c.ca.client("apiserver-kubelet", "kube-apiserver", "system:masters"),
		c.ca.server("kubelet", "system:node:"+NodeName, nil, []string{NodeName}, nodeIP),
		c.ca.kubeconfig("admin", "admin", "system:masters"),
		c.ca.kubeconfig("node", "system:node:"+NodeName, "system:nodes"),
		c.ca.kubeconfig("controllers", "system:kube-controller-manager"),
		c.ca.kubeconfig("scheduler", "system:kube-scheduler"),
		c.ca.kubeconfig("proxy", "system:kube-proxy"),
	)
}

// StartControlPlane starts etcd, the API server, the controllers, the scheduler and kube-proxy, over what etcd had when they stopped.
func (c *Cluster) StartControlPlane(ctx context.Context) error {
	// A crash of the machine loses nothing that anybody would miss, and syncing to a slow disk takes seconds.
	if err := c.run("etcd", "--data-dir="+c.path("etcd"), "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls="+etcdURL, "--advertise-client-urls="+etcdURL,
		"--listen-peer-urls=http://127.0.0.1:2380"); err != nil {
		return err
	}
	if err := c.run("kube-apiserver", "--etcd-servers="+etcdURL,
		"--advertise-address="+nodeIP, "--secure-port=6443", "--service-cluster-ip-range="+serviceNet,
		"--allow-privileged", "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--client-ca-file="+c.ca.file("ca.crt"),
		"--tls-cert-file="+c.ca.file("apiserver.crt"), "--tls-private-key-file="+c.ca.file("apiserver.key"),
		"--kubelet-preferred-address-types=InternalIP", "--kubelet-certificate-authority="+c.ca.file("ca.crt"),
		"--kubelet-client-certificate="+c.ca.file("apiserver-kubelet.crt"), "--kubelet-client-key="+c.ca.file("apiserver-kubelet.key"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+c.ca.file("sa.pub"), "--service-account-signing-key-file="+c.ca.file("sa.key"),
		"--event-ttl=1h", "--v=1"); err != nil {
		return err
	}
	if err := c.newest().Await(ctx, startLimit, c.answers); err != nil {
		return err
	}
	return errors.Join(
		c.run("kube-controller-manager", "--kubeconfig="+c.ca.file("controllers.conf"), "--leader-elect=false",
			"--use-service-account-credentials", "--root-ca-file="+c.ca.file("ca.crt"),
			"--service-account-private-key-file="+c.ca.file("sa.key"), "--bind-address=127.0.0.1"),
		c.run("kube-scheduler", "--kubeconfig="+c.ca.file("scheduler.conf"), "--leader-elect=false", "--bind-address=127.0.0.1"),
		c.startProxy(),
	)
}

// StopControlPlane ends all that StartControlPlane has started at once, as when a site loses its power, and the programs of ours that run beside it.
func (c *Cluster) StopControlPlane() {
	for _, p := range slices.Backward(c.processes) {
		p.Kill()
	}
	c.processes = nil
}

// StopControllers ends the controllers alone, so that what is deleted stays so until StopControlPlane and StartControlPlane.
func (c *Cluster) StopControllers() {
	for _, p := range c.processes {
		if p.Name == "kube-controller-manager" {
			p.Kill()
		}
	}
}

// answers asks the API server whether it is ready: its own word, which covers what it sets up at its start.
func (c *Cluster) answers(ctx context.Context) error {
	_, err := c.Kubectl(ctx, "get", "--raw=/readyz")
	return err
}

// startProxy starts kube-proxy, by whose rules the API server reaches Services.
func (c *Cluster) startProxy() error {
	return c.run("kube-proxy", "--kubeconfig="+c.ca.file("proxy.conf"), "--hostname-override="+NodeName,
		"--proxy-mode=iptables", "--cluster-cidr="+podNet, "--bind-address=127.0.0.1",
		// Limits of connection tracking belong to the machine, not to a network namespace.
		"--conntrack-max-per-core=0", "--conntrack-tcp-timeout-established=0s", "--conntrack-tcp-timeout-close-wait=0s")
}

// run starts a program that lives as long as the cluster.
func (c *Cluster) run(program string, args ...string) error {
	p, err := c.start(program, args...)
	if err != nil {
		return err
	}
	c.processes = append(c.processes, p)
	return nil
}

// newest is the process that was started last.
func (c *Cluster) newest() *process { return c.processes[len(c.processes)-1] }

// writeFile writes a file below the directory of the run.
func (c *Cluster) writeFile(name, content string) error {
	return os.WriteFile(c.path(name), []byte(content), 0o600)
}
