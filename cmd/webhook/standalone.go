package main

// newStandalone is a webhook without a cluster.
func newStandalone(o options, s *server) (mode, error) {
	labels, err := loadNamespaces(o.namespaces)
	if err != nil {
		return mode{}, err
	}
	certs, err := newCertificates(o, s.log)
	return mode{certificates: certs, namespaces: labels, finish: func(s *server) error {
		s.policies = &policies{source: s.source, engine: s.engine, attempted: s.attempted, poll: pollFiles}
		s.tasks = append(s.tasks, s.policies.run)
		return nil
	}}, err
}
