package certs

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Names are the objects of the cluster that certificates live in and are made for.
type Names struct {
	// Namespace holds the Secret and the Service.
	Namespace string
	// Service is the Service of the webhook configurations, which the certificate is for.
	Service string
	// Secret holds keys and certificates. Anyone who may write it can impersonate the webhook. It is empty if the certificates
	// come from elsewhere, as cert-manager's do.
	Secret string
	// Configurations are the ValidatingWebhookConfigurations whose caBundle belongs to these certificates.
	Configurations []string
	// Extra are further names and addresses that the certificate is for, where clients call the webhook by another name than the
	// Service's.
	Extra []string
}

// host is the name that an API server expects in the certificate.
func (n Names) host() string { return n.Service + "." + n.Namespace + ".svc" }

// hosts are all names that a certificate carries.
func (n Names) hosts() []string {
	return append([]string{n.host(), n.Service + "." + n.Namespace, n.host() + ".cluster.local"}, n.Extra...)
}

// check returns all that is missing.
func (n Names) check(secret bool) error {
	var faults []error
	need := func(field, value string) {
		if value == "" {
			faults = append(faults, fmt.Errorf("%s is empty", field))
		}
	}
	need("Namespace", n.Namespace)
	need("Service", n.Service)
	if secret {
		need("Secret", n.Secret)
	}
	need("Configurations", strings.Join(n.Configurations, ""))
	for _, name := range n.Extra {
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 && net.ParseIP(name) == nil {
			faults = append(faults, fmt.Errorf("Extra %q: not the name or the address of a host", name)) //nolint:staticcheck // the field's name
		}
	}
	return errors.Join(faults...)
}
