package main

import (
	"context"

	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/controller/witness"
)

// witnessPath is where nodes have checkpoints of their audit logs cosigned.
const witnessPath = "/witness" + evidence.AddCheckpointPath

// check reports what is wrong with the options. What is wrong with the files is told in the log: they change.
func (o *witnessOptions) check(fault report) {
	switch {
	case o.Key == "" && *o != (witnessOptions{}):
		fault("witness", "there is none without key")
	case o.Key != "" && o.NodeKeys == "" && !o.TrustFirstUse:
		fault("witness", "want nodeKeys or trustFirstUse: it would know no log")
	}
}

// witness gives a server the witness, if the options ask for one. Every replica answers; the API server keeps what they remember.
func (m *cluster) witness(s *server) error {
	o := m.options.Witness
	if o.Key == "" {
		return nil
	}
	memory, err := witness.NewConfigMaps(m.config, m.options.podNamespace)
	if err != nil {
		return err
	}
	files := &witness.Files{Key: o.Key, NodeKeys: o.NodeKeys, Log: s.log}
	options := witness.Options{
		Key: files.WitnessKey, Given: files.Of, Memory: memory, Events: m.manager.GetEventRecorder("pipeguard"), Registerer: s.registry, Log: s.log,
	}
	if o.TrustFirstUse {
		options.Reported = witness.Reported{Live: m.manager.GetAPIReader()}.Key
	}
	handler, err := witness.New(options)
	if err != nil {
		return err
	}
	s.webhook.Register(witnessPath, s.leave.whileLeaving(handler))
	s.tasks = append(s.tasks, func(ctx context.Context) error { return files.Follow(ctx, pollFiles) })
	return nil
}
