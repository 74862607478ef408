package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

// figure is one metric that is read from a T.
type figure[T any] struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(T) float64
}

func gauge[T any](name, help string, value func(T) float64) figure[T] {
	return figure[T]{prometheus.NewDesc(name, help, nil, nil), prometheus.GaugeValue, value}
}

func counter[T any](name, help string, value func(T) uint64, labels ...string) figure[T] {
	return figure[T]{
		prometheus.NewDesc(name, help, labels, nil), prometheus.CounterValue,
		func(t T) float64 { return float64(value(t)) },
	}
}

func (f figure[T]) of(t T, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(f.desc, f.kind, f.value(t), labels...)
}

func isTrue(claim bool) float64 {
	if claim {
		return 1
	}
	return 0
}

// auditCollector collects the state of a log at each scrape.
type auditCollector struct {
	log     *auditLog
	writer  []figure[segment.Stats]
	sinks   []figure[evidence.SinkStats]
	witness []figure[*witnessState]
}

func newAuditCollector(log *auditLog) auditCollector {
	type (
		stats = segment.Stats
		sink  = evidence.SinkStats
	)
	return auditCollector{
		log: log,
		writer: []figure[stats]{
			gauge("pipeguard_audit_up", "1 while the audit log takes records, 0 while calls are refused for want of it.", func(s stats) float64 { return isTrue(s.Err == nil) }),
			gauge("pipeguard_audit_signed", "1 while checkpoints are made of the audit log, 0 if the last one could not be.", func(s stats) float64 { return isTrue(s.Unsigned == nil) }),
			gauge("pipeguard_audit_retention_up", "1 while what is too old or too much is removed from the audit log, or nothing is; 0 if the last removal failed.", func(s stats) float64 { return isTrue(s.Unpruned == nil) }),
			gauge("pipeguard_audit_last_seq", "Number of the last durable record.", func(s stats) float64 { return float64(s.Seq) }),
			gauge("pipeguard_audit_open_intents", "Operations whose intent is in the log and whose end is not yet.", func(s stats) float64 { return float64(s.Open) }),
			gauge("pipeguard_audit_segments", "Files of the log.", func(s stats) float64 { return float64(s.Segments) }),
			gauge("pipeguard_audit_bytes", "What the files of the log hold together.", func(s stats) float64 { return float64(s.Bytes) }),
			counter("pipeguard_audit_records_total", "Durable records, those of the log itself included.", func(s stats) uint64 { return s.Records }),
			counter("pipeguard_audit_flushes_total", "Flushes; records that arrive during one share the next.", func(s stats) uint64 { return s.Flushes }),
			counter("pipeguard_audit_poisoned_total", "Files given up after a write or flush had failed.", func(s stats) uint64 { return s.Poisoned }),
			counter("pipeguard_audit_refused_total", "Records that were not taken because the disk is full or failing, without those that a summary counts; their operations did not run.", func(s stats) uint64 { return s.Refused }),
			counter("pipeguard_audit_let_go_total", "Records let go by a log that is told to continue without.", func(s stats) uint64 { return s.Lost }),
			counter("pipeguard_audit_pruned_total", "Files removed by retention.", func(s stats) uint64 { return s.Pruned }),
		},
		sinks: []figure[sink]{
			counter("pipeguard_audit_checkpoints_sent_total", "Checkpoints taken.", func(s sink) uint64 { return s.Sent }, "place"),
			counter("pipeguard_audit_checkpoints_dropped_total", "Checkpoints overtaken by newer ones, which say more.", func(s sink) uint64 { return s.Dropped }, "place"),
			counter("pipeguard_audit_checkpoints_failed_total", "Checkpoints not taken.", func(s sink) uint64 { return s.Failed }, "place"),
		},
		witness: []figure[*witnessState]{
			gauge("pipeguard_audit_witness_contradicts", "1 if the witness has seen another log of this node: it was rolled back or changed.",
				func(w *witnessState) float64 { return isTrue(w.contradicted.Load()) }),
			gauge("pipeguard_audit_witness_clock_differs", "1 if the witness cosigns nothing because its clock and this node's differ by more than ten minutes.",
				func(w *witnessState) float64 { return isTrue(w.clockDiffers.Load()) }),
			gauge("pipeguard_audit_witness_cosigned_timestamp_seconds", "When the witness cosigned last, as Unix time; 0 before the first time.",
				func(w *witnessState) float64 { return float64(w.cosigned.Load()) }),
		},
	}
}

// Describe implements prometheus.Collector.
func (c auditCollector) Describe(out chan<- *prometheus.Desc) {
	for _, f := range c.writer {
		out <- f.desc
	}
	for _, f := range c.sinks {
		out <- f.desc
	}
	for _, f := range c.witness {
		out <- f.desc
	}
}

// Collect implements prometheus.Collector.
func (c auditCollector) Collect(out chan<- prometheus.Metric) {
	stats := c.log.segments.Stats()
	for _, f := range c.writer {
		out <- f.of(stats)
	}
	for _, sink := range c.log.tree.Sinks() {
		for _, f := range c.sinks {
			out <- f.of(sink, sink.Name)
		}
	}
	if c.log.witnessed == nil {
		return
	}
	for _, f := range c.witness {
		out <- f.of(c.log.witnessed)
	}
}
