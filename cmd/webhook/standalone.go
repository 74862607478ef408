package main

import (
	"github.com/pipeguard/pipeguard/internal/admission"
)

// standalone is a webhook without a cluster.
type standalone struct {
	certs  certificates
	labels namespaceLabels
}

func newStandalone(o options, s *server) (mode, error) {
	labels, err := loadNamespaces(o.namespaces)
	if err != nil {
		return nil, err
	}
	certs, err := newCertificates(o, s.log)
	if err != nil {
		return nil, err
	}
	return &standalone{certs, labels}, nil
}

func (m *standalone) certificates() certificates { return m.certs }

func (m *standalone) namespaces() admission.NamespaceLabels { return m.labels }

func (m *standalone) finish(s *server) error {
	s.policies = &policies{source: s.source, engine: s.engine, attempted: s.attempted, poll: pollFiles}
	s.tasks = append(s.tasks, s.policies.run)
	return nil
}
