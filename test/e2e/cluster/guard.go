//go:build e2e

package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Addresses of the cluster, for programs of the node.
const (
	// Server is the API server's.
	Server = apiURL
	// Kubelet is the kubelet's.
	Kubelet = "https://" + nodeIP + ":10250"
	// Runtime is containerd's.
	Runtime = "unix:///run/containerd/containerd.sock"
)

// Dir makes a directory for files of a test, which goes with the cluster.
func (c *Cluster) Dir(name string) (string, error) {
	dir := c.path(name)
	return dir, os.MkdirAll(dir, 0o700)
}

// Credentials are files by which a program shows who it is, and knows the others.
type Credentials struct{ CA, Cert, Key string }

// Credentials makes some for a user that nobody has heard of.
func (c *Cluster) Credentials(user string) (Credentials, error) {
	if err := c.ca.client(user, user); err != nil {
		return Credentials{}, err
	}
	return Credentials{c.ca.file("ca.crt"), c.ca.file(user + ".crt"), c.ca.file(user + ".key")}, nil
}

// Authority is the file of the certificate that every part's is signed by.
func (c *Cluster) Authority() string { return c.ca.file("ca.crt") }

// Resolve makes a name known to the programs of the node, which the pods' DNS does not answer.
func (c *Cluster) Resolve(name, address string) error {
	if err := c.writeFile("hosts", "127.0.0.1 localhost\n"+address+" "+name+"\n"); err != nil {
		return err
	}
	if err := syscall.Mount(c.path("hosts"), "/etc/hosts", "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount /etc/hosts: %w", err)
	}
	return nil
}

// Service is a program of ours that runs on the node, beside containerd and the kubelet.
type Service struct{ process *process }

// StartService starts a program. It ends with Stop, or with the cluster.
func (c *Cluster) StartService(exe string, args ...string) (*Service, error) {
	p, err := c.startAs(filepath.Base(exe), exe, args...)
	if err != nil {
		return nil, err
	}
	c.processes = append(c.processes, p)
	return &Service{p}, nil
}

// Stop asks the program to end, and returns an error if it had ended before, or does not end in order.
func (s *Service) Stop() error { return s.process.Stop(20 * time.Second) }

// Log is the end of what the program has written.
func (s *Service) Log() string { return string(s.process.tail(40)) }
