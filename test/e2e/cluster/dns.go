//go:build e2e

package cluster

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// clusterDomain ends the names of Services.
const clusterDomain = "cluster.local"

// dns answers for the names of Services, which is all that a pod here asks. It runs in this process.
type dns struct {
	socket net.PacketConn
	done   chan struct{}
}

// startDNS starts to answer at the address that the kubelet gives to pods.
func (c *Cluster) startDNS() error {
	socket, err := net.ListenPacket("udp4", nodeIP+":53")
	if err != nil {
		return fmt.Errorf("listen for names: %w", err)
	}
	c.dns = &dns{socket: socket, done: make(chan struct{})}
	go func() {
		defer close(c.dns.done)
		buffer := make([]byte, 512)
		for {
			n, from, err := socket.ReadFrom(buffer)
			if err != nil {
				return // closed
			}
			if reply, err := c.resolve(buffer[:n]); err == nil {
				_, _ = socket.WriteTo(reply, from) // whoever asked asks again
			}
		}
	}()
	return nil
}

func (d *dns) stop() {
	if d != nil {
		_ = d.socket.Close()
		<-d.done
	}
}

// resolve answers a question about the address of a Service, and has no answer to any other.
func (c *Cluster) resolve(query []byte) ([]byte, error) {
	var message dnsmessage.Message
	if err := message.Unpack(query); err != nil {
		return nil, err
	}
	reply := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: message.ID, Response: true, Authoritative: true, RecursionDesired: message.RecursionDesired},
		Questions: message.Questions,
	}
	reply.RCode = dnsmessage.RCodeNameError
	for _, q := range message.Questions {
		address, ok := c.serviceAddress(q.Name.String())
		if !ok {
			continue
		}
		reply.RCode = dnsmessage.RCodeSuccess
		if q.Type == dnsmessage.TypeA {
			reply.Answers = append(reply.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: 5},
				Body:   &dnsmessage.AResource{A: address.As4()},
			})
		}
	}
	return reply.Pack()
}

// serviceAddress reads SERVICE.NAMESPACE.svc.cluster.local.
func (c *Cluster) serviceAddress(name string) (netip.Addr, bool) {
	parts := strings.Split(strings.TrimSuffix(name, ".svc."+clusterDomain+"."), ".")
	if len(parts) != 2 {
		return netip.Addr{}, false
	}
	var service corev1.Service
	if err := c.Client.Get(context.Background(), client.ObjectKey{Namespace: parts[1], Name: parts[0]}, &service); err != nil {
		return netip.Addr{}, false
	}
	address, err := netip.ParseAddr(service.Spec.ClusterIP)
	return address, err == nil && address.Is4()
}
