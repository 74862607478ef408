package kubelet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/httpsclient"
	"github.com/pipeguard/pipeguard/internal/proxy/peer"
)

// Options are the address of the kubelet and the credentials of both sides.
type Options struct {
	// URL is https://HOST:PORT, with port 10250 as a rule.
	URL string
	// CAFile has the certificates that the kubelet's is to be signed by, in PEM. There is no other trust.
	CAFile string
	// ServerName is the name in the kubelet's certificate. Without it the name is the host of URL, or Node where that is a loopback
	// address, and a certificate that is itself one of CAFile's needs no name.
	ServerName string
	// Node is the name of this node, which kubelets have in their certificates.
	Node string
	// TokenFile has a bearer token that may get nodes/pods or nodes/proxy, which is more than this program needs and not
	// within its power to narrow. CertFile and KeyFile are a client certificate. One of the two is needed.
	TokenFile, CertFile, KeyFile string
	// Timeout is how long the kubelet may take, 2 s if not set.
	Timeout time.Duration

	dial func(ctx context.Context, network, address string) (net.Conn, error) // nil is TCP
}

const defaultTimeout = 2 * time.Second

// Client asks the kubelet. It is a peer.Accounts. Files are read each time, so that they may be replaced.
type Client struct {
	url     string
	http    *http.Client
	timeout time.Duration
	flights singleflight.Group
	good    atomic.Int64
	failed  atomic.Int64

	mu    sync.RWMutex // guards the fields below
	known pods
}

var _ peer.Accounts = (*Client)(nil)

// New asks nothing yet, and reports all that is wrong with the options.
func New(o Options) (*Client, error) {
	var errs []error
	u, err := httpsclient.ParseServer(o.URL)
	if err != nil {
		errs = append(errs, fmt.Errorf("url: %w", err))
	}
	if o.CAFile == "" {
		errs = append(errs, errors.New("no authority to know the kubelet by"))
	}
	if (o.CertFile == "") != (o.KeyFile == "") {
		errs = append(errs, errors.New("a client certificate and its key come together"))
	}
	if (o.TokenFile == "") == (o.CertFile == "") {
		errs = append(errs, errors.New("want either a token or a client certificate"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("kubelet: %w", err)
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	asks, err := httpsclient.New(httpsclient.Options{
		CAFile: o.CAFile, CADecides: true, ServerName: o.serverName(u.Hostname()), OwnCertificate: o.ServerName == "", TokenFile: o.TokenFile, CertFile: o.CertFile, KeyFile: o.KeyFile, Dial: o.dial,
	})
	if err != nil {
		return nil, fmt.Errorf("kubelet: %w", err)
	}
	return &Client{url: "https://" + u.Host + "/pods", http: asks, timeout: o.Timeout}, nil
}

// serverName is the name that the kubelet's certificate must have.
func (o Options) serverName(host string) string {
	if ip, err := netip.ParseAddr(host); host == "localhost" || err == nil && ip.IsLoopback() {
		host = cmp.Or(o.Node, host)
	}
	return cmp.Or(o.ServerName, host)
}

// ServiceAccount implements peer.Accounts.
func (c *Client) ServiceAccount(ctx context.Context, pod caller.Pod) (string, error) {
	asked := time.Now()
	c.mu.RLock()
	account := c.known.find(pod)
	c.mu.RUnlock()
	for range 2 {
		if account != "" {
			return account, nil
		}
		select {
		case r := <-c.flights.DoChan("", func() (any, error) { return c.fetch() }):
			if r.Err != nil {
				return "", r.Err
			}
			f, _ := r.Val.(flight) // fetch returns nothing else
			if account = f.pods.find(pod); !f.began.Before(asked) {
				return account, nil
			}
		case <-ctx.Done():
			return "", fmt.Errorf("wait for the kubelet: %w", ctx.Err())
		}
		// That list was under way before the question: the pod may be newer.
	}
	return account, nil
}

// flight is a list that several may wait for.
type flight struct {
	pods  pods
	began time.Time
}

// fetch lists the pods for all callers that wait. It ends by itself, and outlives none of them by more than its time-out.
func (c *Client) fetch() (flight, error) {
	f := flight{began: time.Now()}
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	var err error
	if f.pods, err = c.list(ctx); err != nil {
		c.failed.Add(1)
		return flight{}, fmt.Errorf("list the kubelet's pods: %w", err)
	}
	c.good.Add(1)
	c.mu.Lock()
	c.known = f.pods // pods that are gone are forgotten
	c.mu.Unlock()
	return f, nil
}
