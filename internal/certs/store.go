package certs

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// ErrConflict means that an object was changed since it was read.
var ErrConflict = errors.New("the object was changed since it was read")

// Store holds the objects that a Rotator cares for. What it reads is never older than a write that has ended, and each
// write is refused with ErrConflict if its object has changed since it was read.
type Store interface {
	// Configurations returns those that could be read, with an error for the others.
	Configurations(context.Context) ([]Configuration, error)
	// WriteBundle makes the bundle the caBundle of every webhook of a configuration that exists, and nothing else.
	WriteBundle(context.Context, Configuration, []byte) error
	Secret(context.Context) (Secret, error)
	// WriteSecret replaces the data, or makes the Secret.
	WriteSecret(context.Context, Secret) error
	// Changes has a value after any change of an object.
	Changes() <-chan struct{}
}

// Secret is the Secret of Names.
type Secret struct {
	Data map[string][]byte
	UID  string
	// Version is the resourceVersion, empty if there is no Secret.
	Version string
}

// Configuration is what stands in a ValidatingWebhookConfiguration.
type Configuration struct {
	Name     string
	Webhooks []Webhook
	// Version is the resourceVersion, empty if there is no such configuration.
	Version string
	// Edition changes with everything that an API server does by the configuration: its uid and generation.
	Edition string
}

// Exists reports whether there is such a configuration.
func (c Configuration) Exists() bool { return c.Version != "" }

// Webhook is one entry of a configuration.
type Webhook struct {
	Name   string
	Bundle []byte
}

// holds reports whether every webhook trusts the bundle and nothing else.
func (c Configuration) holds(bundle []byte) bool {
	return !slices.ContainsFunc(c.Webhooks, func(w Webhook) bool { return !bytes.Equal(w.Bundle, bundle) })
}

// live returns the valid certificates that configurations trust.
func live(configurations []Configuration, now time.Time) []*x509.Certificate {
	var all []*x509.Certificate
	for _, c := range configurations {
		for _, w := range c.Webhooks {
			found, err := decodeCertificates(w.Bundle)
			if err != nil {
				continue // whatever it is, it is replaced
			}
			for _, c := range found {
				if isValid(c, now) {
					all = append(all, c)
				}
			}
		}
	}
	return sorted(all)
}

// patch is the JSON patch (RFC 6902) that puts a bundle into every webhook that has another. An API server refuses it
// with a conflict if the configuration has changed since: it names webhooks by their places.
func (c Configuration) patch(bundle []byte) ([]byte, error) {
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	operations := []operation{{"replace", "/metadata/resourceVersion", c.Version}}
	for i, w := range c.Webhooks {
		if !bytes.Equal(w.Bundle, bundle) {
			operations = append(operations, operation{"add", fmt.Sprintf("/webhooks/%d/clientConfig/caBundle", i), bundle}) // base64, as the API has it
		}
	}
	return json.Marshal(operations)
}
